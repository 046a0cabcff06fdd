import statistics as s
xs = [2, 4, 4, 4, 5, 5, 7, 9]
print(s.mean(xs), s.median(xs), s.mode(xs), s.pstdev(xs), round(s.stdev(xs), 6), s.quantiles(xs, n=4))
