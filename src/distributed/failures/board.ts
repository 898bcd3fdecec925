// Where processes of a job leave word of their end: a folder on the machine, since a process that is about to die cannot wait for messages to arrive.
import { environmentVariable } from '../../protocol/index.ts'
import { decode, integer, object, record } from '../../protocol/decode.ts'
import type { Decoder } from '../../protocol/decode.ts'
import { parseJson } from '../../protocol/jsonText.ts'
import type { Progress, SlotStore } from '../backend.ts'
import { RANK_FAILURE } from './report.ts'
import type { RankFailure } from './report.ts'
import { FileSlots } from './slots.ts'

/** A rank that has ended, and how far it came. */
export interface Departure {
  readonly failure: RankFailure
  readonly progress: Progress
}

const DEPARTURE: Decoder<Departure> = object({ failure: RANK_FAILURE, progress: record(integer(0)) })

const FIRST = 'first.json'
const departureFile = (rank: number): string => `ended-${rank}.json`
const placeFile = (place: string, rank: number): string => `${place}-${rank}`

type Fs = typeof import('node:fs')

/** The words that ranks leave in a folder. */
export class Board {
  readonly folder: string
  readonly #fs: Fs

  constructor(folder: string, fs: Fs) {
    this.folder = folder
    this.#fs = fs
    fs.mkdirSync(folder, { recursive: true })
  }

  /** Says that a rank has failed. Returns whether it is the first that does. */
  claim(failure: RankFailure): boolean {
    const draft = `${this.folder}/${FIRST}.${failure.rank}-${process.pid}`
    try {
      this.#fs.writeFileSync(draft, JSON.stringify(failure))
      // A link, unlike a rename, fails where there is one already; and the file is whole when it appears.
      this.#fs.linkSync(draft, `${this.folder}/${FIRST}`)
      return true
    } catch {
      return this.first() === null
    } finally {
      this.#fs.rmSync(draft, { force: true })
    }
  }

  /** The failure that came first; null if there is none. */
  first(): RankFailure | null {
    return this.#read(FIRST, RANK_FAILURE)
  }

  /** Says that a rank has come to a place in its program, where it waits for others. */
  come(place: string, rank: number): void {
    this.#fs.writeFileSync(`${this.folder}/${placeFile(place, rank)}`, '')
  }

  /** Whether a rank has come to a place, and has not gone back. */
  isAt(place: string, rank: number): boolean {
    return this.#fs.existsSync(`${this.folder}/${placeFile(place, rank)}`)
  }

  /** Says that a rank waits no more. */
  goBack(place: string, rank: number): void {
    this.#fs.rmSync(`${this.folder}/${placeFile(place, rank)}`, { force: true })
  }

  /** Says that a rank ends. */
  leave(rank: number, departure: Departure): void {
    const file = `${this.folder}/${departureFile(rank)}`
    try {
      this.#fs.writeFileSync(`${file}.draft`, JSON.stringify(departure))
      this.#fs.renameSync(`${file}.draft`, file)
    } catch {
      // The folder is gone, and the job with it.
    }
  }

  /** How a rank has ended; null if it has not. */
  departure(rank: number): Departure | null {
    return this.#read(departureFile(rank), DEPARTURE)
  }

  /** Places for texts of a rank. */
  openSlots(rank: number, slotBytes: number): SlotStore {
    return new FileSlots(this.folder, this.#fs, rank, slotBytes)
  }

  #read<T>(name: string, decoder: Decoder<T>): T | null {
    const file = `${this.folder}/${name}`
    try {
      if (!this.#fs.existsSync(file)) return null
      return decode('initProcessGroup', decoder, parseJson('initProcessGroup', name, this.#fs.readFileSync(file, 'utf8')))
    } catch {
      return null
    }
  }
}

let opened: Board | null | undefined

/**
 * The board of the job that this process belongs to: the folder that `tensorfx run` made for it, or a folder that the launcher removes at the end of the job; null if
 * there is neither.
 */
export function boardOfJob(): Board | null {
  opened ??= openBoard()
  return opened
}

function openBoard(): Board | null {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  const own = environmentVariable('TENSORFX_RUN_DIR')
  const session = environmentVariable('PMIX_SERVER_TMPDIR')
  const job = environmentVariable('PMIX_NAMESPACE')
  const folder = own ?? (session === undefined || job === undefined ? null : `${session}/tensorfx-${job}`)
  if (fs === undefined || folder === null) return null
  try {
    return new Board(folder, fs)
  } catch {
    return null
  }
}
