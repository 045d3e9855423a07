PRAGMA page_size = 512;
CREATE TABLE `part` (`id` text PRIMARY KEY, `n` integer NOT NULL, `data` text, CONSTRAINT `c` CHECK (`n` IS NOT NULL));
INSERT INTO part VALUES ('p1', 0, 'one'), ('p2', 1, substr(replace(hex(zeroblob(5000)), '0', 'w'), 4) || 'xyz'), ('p3', -1, NULL);
ALTER TABLE part ADD COLUMN later text;
INSERT INTO part VALUES ('p4', 9007199254740993, x'00ff', 'added'), ('p5', -300, 'five', NULL);
WITH RECURSIVE i(n) AS (SELECT 6 UNION ALL SELECT n + 1 FROM i WHERE n < 64) INSERT INTO part SELECT 'p' || n, 70000, 'row ' || n, NULL FROM i;
