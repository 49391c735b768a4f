"""A daily five-minute Mandarin podcast about the FIFA World Cup 2026, written by three agents in a sandbox.

    prepare → SearchAgent → adapt_content → ContentAgent → adapt_script → GenScriptAgent → save_scripts

`wcpod.podcast.run.run_episode` runs it; `wcpod run` is its command line. Needs the extra `podcast`.
"""
