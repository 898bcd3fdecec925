// Groups of processes: their processor time, and how to end them.
import { existsSync, readFileSync, readdirSync } from 'node:fs'

/** The processor time that each process of a group has taken so far, in milliseconds; empty if the system does not tell (only Linux has /proc). */
export function processorTimes(group) {
  const times = new Map()
  if (!existsSync('/proc/self/stat')) return times
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The fields after the name, which may hold spaces: state, parent, group, …; user and system time are the 12th and 13th, in hundredths of a second.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      if (Number(fields[2]) === group) times.set(pid, 10 * (Number(fields[11]) + Number(fields[12])))
    } catch {
      // It has ended since.
    }
  }
  return times
}

/** Ends a process that was started `detached`, and all that it started. */
export function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
