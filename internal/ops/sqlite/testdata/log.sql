PRAGMA page_size = 512;
PRAGMA journal_mode = WAL;
CREATE TABLE message (id text PRIMARY KEY, data text);
INSERT INTO message VALUES ('a', 'old');
PRAGMA wal_checkpoint(TRUNCATE);
-- Copied while this is open, with the transaction of the last line begun:
UPDATE message SET data = 'new' WHERE id = 'a';
INSERT INTO message VALUES ('b', 'two');
