"""Reports on releases for people: one document, written as a web page or as Markdown."""
