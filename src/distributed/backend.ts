// What moves bytes between ranks. Everything above (groups, checks, DDP, FSDP) knows only these interfaces.
import type { Collective } from './collective.ts'

/** A collective that was started. */
export interface Task {
  /** Makes progress, and tells whether the collective is over. Throws when it cannot end any more, because a rank is gone. */
  poll(): boolean
  /** Of a `recv`: the rank that sent, within the group. Defined when it is over. */
  readonly source?: number | undefined
  /** Of a collective in pieces: starts what can be started, and tells whether all of it is. The group's next collective comes after that. */
  advance?(): boolean
}

/** The ranks of one group, connected. */
export interface Channel {
  /** Starts a collective. Its tensors must keep their memory until the task is over. */
  start(collective: Collective): Task
  /**
   * The ranks, within the group, that have not started their `sequence`-th collective of this channel (1 is the first). It may take a moment: ranks are asked.
   */
  absent(sequence: number): readonly number[]
  close(): void
}

/** How far a rank came: the number of its last collective in each group, by the group's name. */
export type Progress = Readonly<Record<string, number>>

/** How another rank has ended. */
export interface Ended {
  readonly cause: string
  readonly code: number
  /** How far it came; null if that is not known. */
  readonly progress: Progress | null
}

/** Short texts in numbered places of this rank, which all ranks can read, also while this one hangs. */
export interface SlotStore {
  write(slot: number, text: string): void
  read(rank: number): readonly string[]
}

/** A world: this rank among all, and how to connect some of them. */
export interface Backend {
  readonly name: 'mpi' | 'threads' | 'fake' | 'single'
  readonly rank: number
  readonly size: number
  /** Connects world ranks. Every rank of the world calls it, in the same order; null for those that are not among `ranks`. */
  open(ranks: readonly number[]): Channel | null
  /** Lets everything that was started go on, if that takes more than to poll what is waited for. */
  progress?(): void
  /** Waits a moment, in which other ranks can make progress; `attempt` counts up while nothing happens. */
  idle(attempt: number): void
  /** The end of the world, when all ranks are done. A backend may wait for them, `patience` milliseconds: if some are not done by then, it is called again when the process ends. */
  finalize(patience: number): void
  /** The end of the world for all ranks, because this one failed: the job ends with this exit code. */
  abort(code: number): void
  /** Collectives that are under way, which the end of this process would break. */
  readonly pending?: number
  /** Makes places for texts of at most `slotBytes` bytes; null if the ranks have nothing in common that could hold them. */
  openSlots?(slots: number, slotBytes: number): SlotStore | null
  /** How another rank of the world has ended, as far as it is known here; null while it has not. */
  ended?(rank: number): Ended | null
}
