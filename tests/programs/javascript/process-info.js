console.log(typeof process.argv[1], process.argv.length, typeof process.env, process.stdout.write("no newline") , typeof process.cwd(), typeof process.hrtime.bigint());
process.stdout.write("x\n");
