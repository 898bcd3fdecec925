// Failures of backends and of what they compiled, for the counters and for those who listen to events.
import { TensorfxError } from '../../errors/index.ts'
import { announce } from '../../events/index.ts'
import type { FailureEvent } from '../../events/index.ts'
import { valueText } from '../../protocol/index.ts'

/** Errors that were told: one goes through several hands before it reaches the program. */
const told = new WeakSet<Error>()

/** Tells of a failure, once for each error. `backend`: its name, if known. */
export function announceFailure(stage: FailureEvent['stage'], error: unknown, backend: string | null): void {
  if (error instanceof Error) {
    if (told.has(error)) return
    told.add(error)
  }
  const code = error instanceof TensorfxError ? error.code : error instanceof Error ? error.name : typeof error
  const message = error instanceof Error ? error.message : valueText(error)
  announce({ kind: 'failure', code }, () => ({ kind: 'failure', stage, code, message, backend }))
}
