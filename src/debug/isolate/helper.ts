// Helpers: what answers queries outside this process, as the isolator sees it.
import type { Query } from './protocol.ts'

/** A running helper: a child process or worker. */
export interface Helper {
  post(query: Query): void
  /** `onMessage` gets whatever the helper sends, which is checked there; `onDeath` the reason if the helper ends without having been killed. */
  listen(onMessage: (message: unknown) => void, onDeath: (reason: string) => void): void
  kill(): void
  /** Whether it reports, for each query, that its modules are imported. If not, only queries with imports are assumed to report it. Default false. */
  readonly announces?: boolean
}

/** Starts a helper. */
export type StartHelper = () => Promise<Helper>
