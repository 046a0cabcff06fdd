try { await Promise.any([Promise.reject(new Error("a")), Promise.reject(new Error("b"))]); }
catch (e) { console.log(e.constructor.name, e.errors.map((x) => x.message), e.message); }
