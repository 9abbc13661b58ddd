"""What a fitted model is used for: one task a file; the methods of `HMM` pass on to them."""
