"""A release as a folder to upload: what describes it to people, to a dataset hub, to catalogues and to the law."""
