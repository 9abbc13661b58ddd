// Browsers refuse workers to a page that is opened from a folder. There the worker's script, which only searches the
// site, runs in a hidden frame instead, behind the same interface.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = "<!doctype html>"
      this.frame.addEventListener("load", () => this.begin(url), { once: true })
      document.body.append(this.frame)
    }

    begin(url) {
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.addEventListener("load", () => {
        this.postMessage = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }))
        this.waiting.forEach(this.postMessage)
      })
      inside.document.head.append(script)
    }

    postMessage(data) {
      this.waiting.push(data)
    }
  }
}
