-- What is known of a stream without reading it. The last of its rows is noted here too, because a
-- chain of hashes does not show that its tail is missing.
CREATE TABLE streams (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    name    TEXT    NOT NULL UNIQUE,
    seq     INTEGER NOT NULL DEFAULT 0,
    hash    BLOB    NOT NULL,
    posted  INTEGER NOT NULL DEFAULT 0,
    done    INTEGER NOT NULL DEFAULT 0,
    fence   INTEGER NOT NULL DEFAULT 0,
    owner   TEXT,
    renewed INTEGER NOT NULL DEFAULT 0,
    ttl     INTEGER NOT NULL DEFAULT 0,
    summary TEXT
) STRICT;

-- In order of writing, not by stream: one commit for many streams then fills a few pages at the end
-- of the table instead of touching one page for each stream.
CREATE TABLE records (
    id     INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL REFERENCES streams,
    seq    INTEGER NOT NULL,
    hash   BLOB    NOT NULL,
    body   TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_by_stream ON records (stream, seq);

-- A post that is done stays, so that the same one cannot be made twice.
CREATE TABLE posts (
    stream  INTEGER NOT NULL REFERENCES streams,
    number  INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    outcome TEXT,
    PRIMARY KEY (stream, number),
    UNIQUE (stream, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX posts_pending ON posts (stream, number) WHERE outcome IS NULL;
