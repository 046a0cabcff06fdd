console.log("before");
throw new RangeError("too much");
