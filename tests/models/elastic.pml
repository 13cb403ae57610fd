/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights of docs/formats/elastic.md, for spin: two agents, etcd's lease, messages that are late or lost, agents that
 * are cut off from each other or from etcd at any moment. Time is a counter of ticks; how long killing takes and how far
 * clocks drift is what the guard and the margins of the real TTL are for: here a right's last tick is the guard.
 * Checked: never do ranks of two epochs live at once.
 *
 *   spin -a tests/models/elastic.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 *
 * -DNO_KILL, -DLEND, -DNO_WAIT and -DANY_EPOCH (for spin) each take one safeguard away: then it finds two groups.
 */
#ifndef TTL
#define TTL 2     /* ticks */
#endif
#ifndef END
#define END 5     /* ticks until the model stops */
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#define NONE 2
#define OTHER (1 - me)

byte now = 0;

/* etcd */
byte holder = NONE;   /* the agent that has the lease */
byte expires = 0;     /* it is taken away at this tick */
byte last_epoch = 0;  /* the record */

/* agents */
byte leads_until[2];  /* the right to lead; 0: none */
byte right[2];        /* to have ranks, until this tick */
byte ranks[2];        /* epoch of the ranks that are alive; 0: none */
byte seen[2];         /* the highest epoch that was started or stopped here */

/* as leader */
byte ordered[2];      /* the epoch that all shall run; 0: none */
byte heard[2];        /* the tick at which the other's last word came */
bool told_idle[2];    /* the other has said that nothing of the last epoch is left */

/* From each agent to the other, one on its way at most. A lost one is taken and not looked at, a late one lies long. */
chan report[2] = [1] of { byte, byte, bool };  /* sent at, highest epoch seen, idle */
chan answer[2] = [1] of { byte, byte, byte };  /* right until, epoch to run or 0, the last epoch */

#ifdef NO_WAIT
#define OTHER_GONE true
#else
#define OTHER_GONE (told_idle[me] || heard[me] + TTL <= now)
#endif
#ifdef NO_KILL
#define IN_TIME(a) true
#else
#define IN_TIME(a) !(ranks[a] != 0 && right[a] <= now + 1)
#endif
#ifdef LEND
#define LENT (now + TTL)
#else
#define LENT (sent + TTL < leads_until[me] -> sent + TTL : leads_until[me])
#endif
#ifdef ANY_EPOCH
#define NEWER true
#else
#define NEWER (epoch > seen[me])
#endif

/* What a member does with an answer, however late it comes. */
inline Obey() {
  if
  :: epoch != 0 && ranks[me] != 0 && ranks[me] != epoch -> ranks[me] = 0; right[me] = 0  /* its group is over */
  :: epoch != 0 && ranks[me] == 0 && NEWER && until > now + 1 ->
     seen[me] = epoch; ranks[me] = epoch; right[me] = until
  :: epoch != 0 && ranks[me] == epoch && until > right[me] -> right[me] = until
  :: epoch == 0 && last >= seen[me] -> ranks[me] = 0; right[me] = 0; seen[me] = last
  :: else
  fi;
  assert(ranks[0] == 0 || ranks[1] == 0 || ranks[0] == ranks[1]);
  until = 0; epoch = 0; last = 0
}

/* Time passes only when every agent whose right is about to end has killed its ranks. */
active proctype Time() {
  do
  :: atomic { now < END && IN_TIME(0) && IN_TIME(1) ->
       now++;
       if
       :: holder != NONE && now >= expires -> holder = NONE; expires = 0
       :: else
       fi
     }
  od
}

proctype Agent(byte me) {
  byte sent, epoch, last, until;
  bool idle;
end:
  do
  /* Takes the lease, or renews it. A renewal that etcd does not get is one that is not made. */
  :: atomic { holder == NONE && leads_until[me] == 0 && now < END ->
       holder = me; expires = now + TTL; leads_until[me] = now + TTL;
       ordered[me] = 0; heard[me] = 0; told_idle[me] = true
     }
  :: atomic { holder == me && leads_until[me] > now && expires < now + TTL ->
       expires = now + TTL; leads_until[me] = now + TTL }
  :: atomic { leads_until[me] != 0 && leads_until[me] <= now -> leads_until[me] = 0; ordered[me] = 0; told_idle[me] = false; heard[me] = 0 }

  /* A member says how it is; the other may not lead any more, or not yet. */
  :: atomic { leads_until[me] == 0 && len(report[me]) == 0 -> report[me]!now, seen[me], (ranks[me] == 0) }
  :: atomic { report[OTHER]?sent, epoch, idle ->
       if
       :: leads_until[me] > now && len(answer[me]) == 0 ->
          heard[me] = now;
          told_idle[me] = (told_idle[me] || (idle && ordered[me] == 0 && epoch == last_epoch));
          if
          :: told_idle[me] -> heard[me] = 0
          :: else
          fi;
          answer[me]!LENT, ordered[me], last_epoch
       :: true  /* lost */
       fi;
       sent = 0; epoch = 0; idle = false
     }
  :: atomic { answer[OTHER]?until, epoch, last ->
       if
       :: true -> Obey()
       :: true -> until = 0; epoch = 0; last = 0  /* lost */
       fi
     }

  /* The leader is a member of its own. */
  :: atomic { leads_until[me] > now -> until = leads_until[me]; epoch = ordered[me]; last = last_epoch; Obey() }

  /* A reason to stop; the next group when nothing of the last one is left anywhere. */
  :: atomic { leads_until[me] > now && ordered[me] != 0 -> ordered[me] = 0 }
  :: atomic { leads_until[me] > now && ordered[me] == 0 && holder == me && last_epoch < EPOCHS && ranks[me] == 0 && OTHER_GONE ->
       last_epoch++; ordered[me] = last_epoch; told_idle[me] = false; heard[me] = now }

  /* Ranks end by themselves, or are killed in time. */
  :: atomic { ranks[me] != 0 -> ranks[me] = 0; right[me] = 0 }
  od
}

init { atomic { run Agent(0); run Agent(1) } }
