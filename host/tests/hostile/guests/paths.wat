;; tool
;; Does one thing to the path in its arguments, in the first directory that it was granted, and answers
;; 0, or 1 + the error's number. What is new is called `new`, in the last directory.
(import "wasi:filesystem/preopens@0.2.12" "get-directories" (func $directories (param i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.open-at"
  (func $open_at (param i32 i32 i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.link-at"
  (func $link_at (param i32 i32 i32 i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.rename-at"
  (func $rename_at (param i32 i32 i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.symlink-at"
  (func $symlink_at (param i32 i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.unlink-file-at" (func $unlink_at (param i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.create-directory-at" (func $mkdir_at (param i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.remove-directory-at" (func $rmdir_at (param i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.readlink-at" (func $readlink_at (param i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.stat-at" (func $stat_at (param i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.set-size" (func $set_size (param i32 i64 i32)))
(import "wasi:filesystem/types@0.2.12" "[method]descriptor.set-times"
  (func $set_times (param i32 i32 i64 i32 i32 i64 i32 i32)))
(data (i32.const 3072) "new")
(func $opened (param $first i32) (param $path i32) (param $len i32) (param $open i32) (param $how i32)
  (call $open_at (local.get $first) (i32.const 1) (local.get $path) (local.get $len)
    (local.get $open) (local.get $how) (i32.const 2304)))
(func $outcome (param $error i32) (result i32 i32)
  (if (i32.eqz (i32.load8_u (i32.const 2304))) (then (return (call $say (i64.const 0)))))
  (call $say (i64.add (i64.const 1) (i64.load8_u (local.get $error)))))
(func $body (param $function i32) (param i32) (param $path i32) (param $len i32) (result i32 i32)
  (local $way i32) (local $first i32) (local $last i32) (local $file i32)
  (local.set $way (i32.load8_u (local.get $function)))
  (call $directories (i32.const 2048))
  (if (i32.eqz (i32.load (i32.const 2052))) (then (return (call $say (i64.const 999)))))
  (local.set $first (i32.load (i32.load (i32.const 2048))))
  (local.set $last (i32.load (i32.add (i32.load (i32.const 2048))
    (i32.mul (i32.sub (i32.load (i32.const 2052)) (i32.const 1)) (i32.const 12)))))
  ;; read, write, truncate, Truncate and write, open a Directory, Mutate a directory
  (if (i32.eq (local.get $way) (i32.const 114)) (then
    (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 0) (i32.const 1))
    (return (call $outcome (i32.const 2308)))))
  (if (i32.eq (local.get $way) (i32.const 119)) (then
    (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 1) (i32.const 2))
    (return (call $outcome (i32.const 2308)))))
  (if (i32.eq (local.get $way) (i32.const 116)) (then
    (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 8) (i32.const 1))
    (return (call $outcome (i32.const 2308)))))
  (if (i32.eq (local.get $way) (i32.const 84)) (then
    (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 8) (i32.const 2))
    (return (call $outcome (i32.const 2308)))))
  (if (i32.eq (local.get $way) (i32.const 68)) (then
    (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 2) (i32.const 1))
    (return (call $outcome (i32.const 2308)))))
  (if (i32.eq (local.get $way) (i32.const 77)) (then
    (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 2) (i32.const 33))
    (return (call $outcome (i32.const 2308)))))
  ;; link, name anew, symlink, unlink, make a directory (d), remove one (x), look (?), what a link says (@)
  (if (i32.eq (local.get $way) (i32.const 108)) (then
    (call $link_at (local.get $first) (i32.const 0) (local.get $path) (local.get $len)
      (local.get $last) (i32.const 3072) (i32.const 3) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 110)) (then
    (call $rename_at (local.get $first) (local.get $path) (local.get $len)
      (local.get $last) (i32.const 3072) (i32.const 3) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 115)) (then
    (call $symlink_at (local.get $first) (local.get $path) (local.get $len) (i32.const 3072) (i32.const 3) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 117)) (then
    (call $unlink_at (local.get $first) (local.get $path) (local.get $len) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 100)) (then
    (call $mkdir_at (local.get $first) (local.get $path) (local.get $len) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 120)) (then
    (call $rmdir_at (local.get $first) (local.get $path) (local.get $len) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 63)) (then
    (call $stat_at (local.get $first) (i32.const 1) (local.get $path) (local.get $len) (i32.const 2304))
    (return (call $outcome (i32.const 2312)))))
  (if (i32.eq (local.get $way) (i32.const 64)) (then
    (call $readlink_at (local.get $first) (local.get $path) (local.get $len) (i32.const 2304))
    (return (call $outcome (i32.const 2308)))))
  ;; open for reading, then set its size (z) or its times (k)
  (call $opened (local.get $first) (local.get $path) (local.get $len) (i32.const 0) (i32.const 1))
  (if (i32.load8_u (i32.const 2304)) (then (return (call $outcome (i32.const 2308)))))
  (local.set $file (i32.load (i32.const 2308)))
  (if (i32.eq (local.get $way) (i32.const 122)) (then
    (call $set_size (local.get $file) (i64.const 0) (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  (if (i32.eq (local.get $way) (i32.const 107)) (then
    (call $set_times (local.get $file) (i32.const 1) (i64.const 0) (i32.const 0) (i32.const 1) (i64.const 0) (i32.const 0)
      (i32.const 2304))
    (return (call $outcome (i32.const 2305)))))
  unreachable)
