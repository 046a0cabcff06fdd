# A run goes on with the model behind one that is down, and a replay takes the same way. The one that is down rests for a
# minute: nobody waits for it once more.

longhaul run > ../ran 2>&1
events thought model route.served_by | sort | uniq -c
events thought route.failed | head -n 1 | grep --only-matching -e '"dead"' -e connect
events thought route.failed | tail -n +2 | sort | uniq -c
told | pick requests.model > ../asked
longhaul replay > ../ran
told | pick requests.model | diff - ../asked
