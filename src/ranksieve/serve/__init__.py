"""A search page and a JSON service over an index, models and judgements; needs the extra `serve`."""
