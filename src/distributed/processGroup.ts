// The world that this process belongs to, and groups of its ranks.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, checkOptions, environmentVariable, valueText } from '../protocol/index.ts'
import { readDebugLevel } from './debugLevel.ts'
import type { DebugLevel } from './debugLevel.ts'
import type { Backend, Channel, Progress, Task } from './backend.ts'
import { describe, descriptionText, writtenTensor } from './collective.ts'
import type { Collective } from './collective.ts'
import { DistributedError } from './errors.ts'
import { boardOfJob } from './failures/board.ts'
import type { RankFailure } from './failures/report.ts'
import { checkEnded } from './failures/ended.ts'
import { lastWords, watchRank } from './failures/watch.ts'
import { FakeBackend } from './fake/backend.ts'
import { isChecked, startCheck } from './fingerprint.ts'
import { openHistory } from './history.ts'
import type { History } from './history.ts'
import { QueuedTask } from './queuedTask.ts'
import { countCollective } from './stats.ts'
import { withCollective, Work } from './work.ts'

/** Options of {@link initProcessGroup}. */
export interface InitOptions {
  /**
   * 'mpi' for a program that `mpirun` or `srun` started; 'threads' for one that {@link runRanks} started; 'fake' for one process that plays rank `rank` of
   * `worldSize`; 'single' for a world of size 1. Default: what the launcher of the program says, else 'single'.
   */
  readonly backend?: 'mpi' | 'threads' | 'fake' | 'single'
  /** Milliseconds after which a collective that other ranks do not join throws CollectiveTimeoutError. Default 1,800,000. Joining the world itself has 20 seconds at least. */
  readonly timeout?: number
  /** Default: TENSORFX_DISTRIBUTED_DEBUG, or 'off'. */
  readonly debugLevel?: DebugLevel
  /** For 'fake': the rank that this process plays. Default 0. */
  readonly rank?: number
  /** For 'fake': how many ranks the world has. */
  readonly worldSize?: number
}

/** How often a collective that is waited for is asked whether it is over, before the clock is read: about 10 µs. */
const QUICK_POLLS = 64

/** PyTorch's default: half an hour. */
const DEFAULT_TIMEOUT = 30 * 60 * 1000

/**
 * Milliseconds that a rank waits for the others to leave the world with it. One that leaves alone has usually failed, and its error, which follows, must not wait for the others, who may wait
 * for this rank.
 */
const FAREWELL = 500

interface World {
  readonly backend: Backend
  readonly timeout: number
  debugLevel: DebugLevel
  /** The last collectives of the ranks; null unless the debug level is 'detail'. */
  history: History | null
  readonly groups: Map<string, ProcessGroup>
  /** Groups with collectives that are not started yet. */
  readonly starting: Set<ProcessGroup>
  readonly main: ProcessGroup
  made: number
}

let world: World | null = null

let joined = false

/** Whether this process has ever joined a world. @internal */
export const hasJoined = (): boolean => joined

/** The thread world that this worker was started for; see {@link runRanks}. */
let offered: Backend | null = null

/** Makes a thread world known to {@link initProcessGroup}. @internal */
export function offerBackend(backend: Backend): void {
  offered = backend
}

/** Lets all groups start what they can: a rank may wait for one while the others need it in another. */
function pumpAll(groups: Set<ProcessGroup>): void {
  for (const group of groups) if (group.pump()) groups.delete(group)
}

/** Ranks that talk to each other. PyTorch's `ProcessGroup`. */
export class ProcessGroup {
  /** '0' is the world. Graphs name groups by it. */
  readonly name: string
  /** The world ranks of the members. */
  readonly ranks: readonly number[]
  /** This process's rank within the group. */
  readonly rank: number
  readonly #world: () => World
  readonly #channel: Channel
  /** Checks must not meet the collectives that they check. */
  readonly #control: Channel
  #sequence = 0
  /** Collectives that are not started yet: they, or others before them, are being checked. */
  readonly #queue: QueuedTask[] = []

  /** @internal */
  constructor(name: string, ranks: readonly number[], rank: number, channels: readonly [Channel, Channel], ofWorld: () => World) {
    this.name = name
    this.ranks = ranks
    this.rank = rank
    ;[this.#channel, this.#control] = channels
    this.#world = ofWorld
  }

  get size(): number {
    return this.ranks.length
  }

  /** Collectives that this group has started. */
  get sequence(): number {
    return this.#sequence
  }

  /** Starts a collective; `finish` runs when it is over. `ownTimeout` replaces the world's. @internal */
  start(collective: Collective, finish: (() => void) | null = null, ownTimeout?: number): Work {
    const world = this.#world()
    const sequence = this.#nextSequence(collective)
    const done = this.#count(world, collective, sequence, finish)
    return this.#work(world, collective, sequence, this.#begin(world, collective, sequence), done, ownTimeout)
  }

  /** Starts a collective and waits for its end; see {@link ProcessGroup.start}. Small ones are over before a Work would be made. @internal */
  run(collective: Collective, finish: (() => void) | null = null): void {
    const world = this.#world()
    const sequence = this.#nextSequence(collective)
    const done = this.#count(world, collective, sequence, finish)
    const task = this.#begin(world, collective, sequence)
    if (this.#isQuick(world, collective, sequence, task)) return done?.()
    this.#work(world, collective, sequence, task, done).wait()
  }

  #what(collective: Collective, sequence: number): string {
    return `${descriptionText(describe(collective))}, ${sequence === 0 ? 'a message' : `number ${sequence}`} of group '${this.name}'`
  }

  #isQuick(world: World, collective: Collective, sequence: number, task: Task): boolean {
    try {
      for (let i = 0; i < QUICK_POLLS; i++) {
        if (world.starting.size > 0) pumpAll(world.starting)
        if (task.poll()) return true
      }
      return false
    } catch (error) {
      throw withCollective(error, () => this.#what(collective, sequence))
    }
  }

  #begin(world: World, collective: Collective, sequence: number): Task {
    try {
      return this.#launch(world, collective, sequence)
    } catch (error) {
      throw withCollective(error, () => this.#what(collective, sequence))
    }
  }

  /** Messages have no number: only two ranks know of them. */
  #nextSequence({ kind }: Collective): number {
    return kind === 'send' || kind === 'recv' ? 0 : ++this.#sequence
  }

  #count({ backend, history }: World, collective: Collective, sequence: number, finish: (() => void) | null): (() => void) | null {
    if (history !== null) history.add(this.name, sequence, descriptionText(describe(collective)))
    const over = countCollective(collective, this.name, sequence, this.ranks.length, this.rank, backend.rank)
    const written = writtenTensor(collective)?.storage ?? null
    if (over === null && written === null) return finish
    // Backends write to the memory itself: what keeps the data in another form hears of it before and afterwards, also where the collective fails and where the version stays.
    written?.noteWrite()
    return () => {
      written?.noteWrite()
      over?.()
      finish?.()
    }
  }

  #launch({ debugLevel, starting }: World, collective: Collective, sequence: number): Task {
    const isCheckedNow = sequence > 0 && this.ranks.length > 1 && isChecked(sequence, debugLevel === 'detail')
    let first: Task | null = null
    if (sequence === 0 || (!isCheckedNow && this.#queue.length === 0)) {
      first = this.#channel.start(collective)
      if (first.advance === undefined || first.advance()) return first
    }
    const started = first
    const check = isCheckedNow
      ? startCheck(
          this.name,
          this.size,
          sequence,
          describe(collective),
          (control) => this.#control.start(control),
          () => this.#difference(),
        )
      : null
    const queued = new QueuedTask(check, () => started ?? this.#channel.start(collective))
    this.#queue.push(queued)
    starting.add(this)
    return queued
  }

  #work(
    { backend, timeout: usual, starting }: World,
    collective: Collective,
    sequence: number,
    task: Task,
    done: (() => void) | null,
    ownTimeout?: number,
  ): Work {
    const timeout = ownTimeout ?? usual
    const what = (): string => this.#what(collective, sequence)
    const describeTimeout = (): string => `${this.#timeoutText(collective, sequence, timeout)}${this.#difference()}`
    const isAbsent = (rank: number): boolean => sequence === 0 || this.#absent(sequence).includes(rank)
    const checkOthers = (): void => checkEnded(backend, { what: what(), group: this.name, ranks: this.ranks, sequence, isAbsent })
    const progress = (): void => {
      pumpAll(starting)
      backend.progress?.()
    }
    return new Work(task, { backend, timeout, progress, what, checkOthers, describeTimeout }, done)
  }

  /** Starts what has been checked, in order. Returns whether nothing is left. @internal */
  pump(): boolean {
    while (this.#queue[0]?.tryToStart() === true) this.#queue.shift()
    return this.#queue.length === 0
  }

  /** The first collective that the ranks of the group did not call alike, as lines that follow a message. */
  #difference(): string {
    const text = this.#world().history?.difference({ name: this.name, ranks: this.ranks }) ?? ''
    return text === '' ? '' : `\n${text}`
  }

  #timeoutText(collective: Collective, sequence: number, timeout: number): string {
    const who = `${this.#what(collective, sequence)}, did not end within ${timeout} ms on rank ${this.rank}.`
    const advice = "Look at what it does instead, or raise 'timeout' in initProcessGroup."
    if (collective.kind === 'recv')
      return `${who} ${collective.peer === null ? 'No rank has sent' : `Rank ${collective.peer} has not sent`} a message with the tag ${collective.tag}. ${advice}`
    if (collective.kind === 'send') return `${who} Rank ${collective.peer} has not received it. ${advice}`
    const absent = this.#absent(sequence)
    if (absent.length === 0) return `${who} All ranks have started it; one may be very slow, or data may be lost.`
    return `${who} ${absent.length === 1 ? `Rank ${absent[0]} has` : `Ranks ${absent.join(', ')} have`} not come to it. ${advice}`
  }

  /** Ranks that have not come to a collective: they have not started to check it, or to run it. */
  #absent(sequence: number): readonly number[] {
    return this.#queue.length > 0 && sequence <= 1000 ? this.#control.absent(sequence) : this.#channel.absent(sequence)
  }

  /** @internal */
  close(): void {
    this.#channel.close()
    this.#control.close()
  }

  toString(): string {
    return `ProcessGroup('${this.name}', rank ${this.rank} of ${this.size})`
  }
}

async function makeBackend({ backend, rank = 0, worldSize }: InitOptions, timeout: number): Promise<Backend> {
  if (backend === 'fake') {
    if (worldSize === undefined || !Number.isSafeInteger(worldSize) || worldSize < 1 || !Number.isSafeInteger(rank) || rank < 0 || rank >= worldSize)
      throw new ArgumentError(
        `initProcessGroup: the fake world needs a worldSize of at least 1, and a rank from 0 to worldSize - 1; got rank ${valueText(rank)} of ${valueText(worldSize)}.`,
      )
    return new FakeBackend(worldSize, rank)
  }
  if (backend === 'single') return new FakeBackend()
  if (backend === 'threads' || (backend === undefined && offered !== null)) {
    if (offered === null)
      throw new DistributedError('initProcessGroup: this is no rank of a thread world. Start the ranks with runRanks(worldSize, module).')
    return offered
  }
  const { isLaunchedByMpi, openMpi } = await import('./mpi/backend.ts')
  if (backend === 'mpi' || isLaunchedByMpi()) return openMpi(timeout)
  return new FakeBackend()
}

/**
 * Joins the world of ranks that this process was started in. Every rank calls it once, before anything else of this module; all other functions are
 * synchronous. PyTorch's `torch.distributed.init_process_group`.
 *
 * @throws DistributedError if there is a world already, MPI cannot be loaded or another rank has ended; CollectiveTimeoutError if one does not come; ArgumentError for bad options.
 * @example
 * await initProcessGroup() // in a program that mpirun started
 * const model = new DistributedDataParallel(new Net())
 */
export async function initProcessGroup(options: InitOptions = {}): Promise<void> {
  checkCount('initProcessGroup', arguments, 1)
  checkOptions('initProcessGroup', options, { backend: true, timeout: 'number', debugLevel: true, rank: 'number', worldSize: 'number' })
  if (world !== null) throw new DistributedError('initProcessGroup: this process has a world already. Call destroyProcessGroup() first.')
  const { timeout = DEFAULT_TIMEOUT, backend: name } = options
  if (name !== undefined && !['mpi', 'threads', 'fake', 'single'].includes(name))
    throw new ArgumentError(`initProcessGroup: backend must be 'mpi', 'threads', 'fake' or 'single', got ${valueText(name)}.`)
  if (!(timeout > 0)) throw new ArgumentError(`initProcessGroup: timeout must be a positive number of milliseconds, got ${valueText(timeout)}.`)
  const debugLevel = readDebugLevel(options.debugLevel)
  const backend = await makeBackend(options, timeout)
  const ranks = Array.from({ length: backend.size }, (_, i) => i)
  const main = openGroup(backend, '0', ranks)
  if (main === null) throw new DistributedError('initProcessGroup: this rank is not in its own world')
  world = {
    backend,
    timeout,
    debugLevel,
    history: debugLevel === 'detail' ? openHistory(backend) : null,
    groups: new Map([['0', main]]),
    starting: new Set(),
    main,
    made: 0,
  }
  joined = true
  if (backend.name === 'mpi') watchProcess(backend)
}

/** How far this rank had come when it left the world. */
let lastProgress: Progress = {}

/** How far this rank has come. */
const progressOfWorld = (): Progress =>
  world === null ? lastProgress : Object.fromEntries([...world.groups.values()].map(({ name, sequence }) => [name, sequence]))

/** Sees that the job ends when this process does, unless it leaves at the end of its program, and that a user reads why. */
function watchProcess(backend: Backend): void {
  const { rank, size } = backend
  const fail = (failure: RankFailure): void => {
    lastWords(failure, progressOfWorld())
    backend.abort(failure.code)
  }
  watchRank({
    rank,
    size,
    fail,
    leave: (failure) => {
      const { pending = 0 } = backend
      if (pending > 0)
        return fail({ ...failure, cause: `${failure.cause} while ${pending} collectives are under way. Wait for every Work.`, code: 1 })
      boardOfJob()?.leave(rank, { failure, progress: progressOfWorld() })
      backend.finalize(Infinity)
    },
  })
}

function openGroup(backend: Backend, name: string, ranks: readonly number[]): ProcessGroup | null {
  const [channel, control] = [backend.open(ranks), backend.open(ranks)]
  return channel === null || control === null ? null : new ProcessGroup(name, ranks, ranks.indexOf(backend.rank), [channel, control], theWorld)
}

/** The world. Throws DistributedError before `initProcessGroup`. */
function theWorld(): World {
  if (world === null) throw new DistributedError('there is no process group yet. Call await initProcessGroup() first, on every rank.')
  return world
}

/** Leaves the world, when all ranks are done. PyTorch's `destroy_process_group`. */
export function destroyProcessGroup(): void {
  checkCount('destroyProcessGroup', arguments, 0)
  const { backend, groups } = theWorld()
  for (const group of groups.values()) group.close()
  lastProgress = progressOfWorld()
  world = null
  backend.finalize(FAREWELL)
}

/**
 * How often `tensorfx run --restarts` has started this program again after a failure; 0 at the first start. PyTorch's `TORCHELASTIC_RESTART_COUNT`.
 *
 * @example if (restartCount() > 0) console.log('resumes from the last checkpoint')
 */
export const restartCount = (): number => Number(environmentVariable('TENSORFX_RESTART_COUNT') ?? 0) || 0

/** Whether this process has joined a world. PyTorch's `is_initialized`. */
export const isInitialized = (): boolean => world !== null

/** The group that is meant: the world by default. Throws DistributedError before `initProcessGroup`. @internal */
export function groupOr(group: ProcessGroup | undefined | null): ProcessGroup {
  if (group === undefined || group === null) return theWorld().main
  if (!(group instanceof ProcessGroup)) throw new ArgumentError(`group must be a ProcessGroup, as newGroup returns it, got ${valueText(group)}.`)
  return group
}

/** The group with a name, which graphs refer to. Throws DistributedError if there is none. @internal */
export function groupNamed(name: string): ProcessGroup {
  const group = theWorld().groups.get(name)
  if (group === undefined)
    throw new DistributedError(
      `there is no process group named '${name}' on this rank; make it with newGroup, in the same order as in the program that recorded the graph.`,
    )
  return group
}

/** This process's rank, in the world or in a group. PyTorch's `get_rank`. */
export const getRank = (group?: ProcessGroup): number => groupOr(group).rank

/** The number of ranks. PyTorch's `get_world_size`. */
export const getWorldSize = (group?: ProcessGroup): number => groupOr(group).size

/** The backend that connects the ranks. PyTorch's `get_backend`. */
export const getBackend = (): Backend['name'] => theWorld().backend.name

/** The world ranks of a group. PyTorch's `get_process_group_ranks`. */
export const getProcessGroupRanks = (group?: ProcessGroup): readonly number[] => groupOr(group).ranks

/** How much is checked and said. PyTorch's `get_debug_level`. */
export const getDebugLevel = (): DebugLevel => world?.debugLevel ?? 'off'

/** Changes the debug level; all ranks must do so. PyTorch's `set_debug_level`. */
export function setDebugLevel(level: DebugLevel): void {
  checkCount('setDebugLevel', arguments, 1)
  const own = theWorld()
  own.debugLevel = readDebugLevel(level)
  own.history = own.debugLevel === 'detail' ? (own.history ?? openHistory(own.backend)) : null
}

/**
 * A group of some ranks of the world. All ranks of the world call it, in the same order; null on those that are not among `ranks`. Default: all. PyTorch's
 * `new_group`. Throws ArgumentError if `ranks` has one twice, or one that the world does not have.
 */
export function newGroup(ranks?: readonly number[]): ProcessGroup | null {
  checkCount('newGroup', arguments, 1)
  const { backend, groups } = theWorld()
  const all = ranks ?? Array.from({ length: backend.size }, (_, i) => i)
  if (
    !Array.isArray(all) ||
    all.length === 0 ||
    new Set(all).size < all.length ||
    !all.every((r) => Number.isSafeInteger(r) && r >= 0 && r < backend.size)
  )
    throw new ArgumentError(`newGroup: ranks must be different integers from 0 to ${backend.size - 1}, got ${valueText(ranks)}.`)
  const name = String(++theWorld().made)
  const group = openGroup(
    backend,
    name,
    all.toSorted((a, b) => a - b),
  )
  if (group !== null) groups.set(name, group)
  return group
}
