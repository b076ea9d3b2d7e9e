"""Articles of a dump -> pages of a release: staged, parsed, put in files, checked and committed."""
