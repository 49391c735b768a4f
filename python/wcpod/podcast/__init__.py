"""A daily Mandarin podcast about the topic of a show, written by three agents in a sandbox.

    prepare → SearchAgent → adapt_content → ContentAgent → adapt_script → GenScriptAgent → save_scripts

`wcpod.podcast.run.run_episode` runs it; `wcpod run` is its command line. Needs the extra `podcast`.
"""
