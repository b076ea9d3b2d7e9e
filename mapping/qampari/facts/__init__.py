"""Facts of Wikidata: which ones questions are made of, and where pages say them."""
