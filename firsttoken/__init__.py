"""The one command: hands each subcommand to its package, and tells the whole story in `demo`.

    __main__ -> the cli of another package, imported when it is asked for
             -> status   status_reply (JSON to values) -> status_table -> status_screen
             -> demo     demo_plan, demo_folder -> processes (tether) -> demo_story (pager, demo_view) -> demo_compare
                                                 -> prometheus, where it is installed

Every part of the demo is a process of its own that is met only over HTTP and SQL, as a user would meet it.
"""
