"""Hidden structures: what turns weights of a model's parts and data into expected statistics, draws or best guesses."""
