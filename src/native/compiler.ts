// The C compiler of this machine, and the libraries that it makes. A library is kept in a folder under a name that says what it was made from; one is used again only if no other user can have
// written it.
import type { ChildProcess } from 'node:child_process'
import { UnsupportedError } from '../errors/index.ts'
import { environmentVariable, kept } from '../protocol/index.ts'
import { isOwn, keepWithin, openFolder, sha256 } from './folder.ts'
import type { CacheFolder } from './folder.ts'

const crypto = (): typeof import('node:crypto') => process.getBuiltinModule('node:crypto')
const fs = (): typeof import('node:fs') => process.getBuiltinModule('node:fs')
const os = (): typeof import('node:os') => process.getBuiltinModule('node:os')
const path = (): typeof import('node:path') => process.getBuiltinModule('node:path')
const children = (): typeof import('node:child_process') => process.getBuiltinModule('node:child_process')

/** Results must be those of WebAssembly: nothing is fused or reordered but what the code says. */
const FLAGS = [
  ...['-O2', '-march=native', '-shared', '-fPIC', '-w'],
  ...['-ffp-contract=off', '-fno-math-errno', '-fno-trapping-math', '-fwrapv', '-fno-strict-aliasing'],
] as const
/** GCC alone: code is in vectors already, and sums stay in their registers where variables are not coalesced (measured: products of known sizes take two thirds of the time). */
const GCC_FLAGS = ['-fno-tree-loop-vectorize', '-fno-tree-coalesce-vars'] as const
/** Milliseconds for the question what a compiler is. */
const ANSWER_TIME = 10_000
/** Milliseconds for a library. */
const COMPILE_TIME = 60_000

/** A compiler that answered. */
export interface Compiler {
  readonly command: string
  /** What it is and compiles for, as one number of many digits: everything that it defines by itself. */
  readonly identity: string
  readonly version: string
  /** What every library is compiled with. */
  readonly flags: readonly string[]
  /** How many floats a vector of the processor has. */
  readonly lanes: 16 | 8 | 4
}

/** Compilers start programs of their own: all of them are one group, which can be ended as one. */
const OWN_GROUP = { detached: true } as const

function endGroup(pid: number | undefined): void {
  if (pid === undefined || pid === 0) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Asks a command what it is. Null if it is not there, fails, or does not answer. */
function asked(command: string): Compiler | null {
  const { status, stdout, pid } = children().spawnSync(command, ['-march=native', '-E', '-dM', '-x', 'c', '-'], {
    input: '',
    encoding: 'utf8',
    timeout: ANSWER_TIME,
    ...OWN_GROUP,
  })
  endGroup(pid)
  if (status !== 0 || !/^#define __GNUC__ /m.test(stdout)) return null
  const version = /^#define __VERSION__ "(.*)"$/m.exec(stdout)?.[1] ?? 'unknown version'
  const lanes = stdout.includes('#define __AVX512F__ ') ? 16 : stdout.includes('#define __AVX2__ ') ? 8 : 4
  const flags = stdout.includes('#define __clang__ ') ? FLAGS : [...FLAGS, ...GCC_FLAGS]
  return { command, version, lanes, flags, identity: sha256(stdout) }
}

/** The compiler: `given`, or the first of CC, cc, gcc and clang that answers. Throws UnsupportedError if there is none. */
export function findCompiler(given?: string): Compiler {
  const named = given ?? environmentVariable('CC')
  const candidates = named === undefined || named === '' ? ['cc', 'gcc', 'clang'] : [named]
  for (const candidate of candidates) {
    const compiler = asked(candidate)
    if (compiler !== null) return compiler
  }
  throw new UnsupportedError(
    `native.init: no C compiler answers (tried ${candidates.join(', ')}): install GCC or Clang, or name one, init({ compiler: '/path/to/cc' }). WebAssembly computes the same without.`,
  )
}

/** What a library is made from. */
export interface LibrarySource {
  /** What its text follows from: kernels as they are printed, which takes less time than to emit them. */
  readonly from: () => string
  readonly text: () => string
}

/** A library of the folder. */
export interface MadeLibrary {
  readonly file: string
  /** Whether it was not there before. */
  readonly isNew: boolean
}

/** A library that is to be made. */
interface Work {
  readonly file: string
  /** What it is called until it is whole; what belongs to it begins so, too. */
  readonly made: string
  readonly source: () => string
  /** Whether it was made before. */
  readonly isDone: boolean
  /** What the compiler is given. */
  readonly command: readonly string[]
}

function clean(made: string): void {
  for (const rest of [made, `${made}.c`, `${made}.log`, `${made}.sum`]) fs().rmSync(rest, { force: true })
}

/** Where libraries are made and kept. */
export class Workshop {
  readonly compiler: Compiler
  readonly folder: CacheFolder
  readonly #milliseconds: number
  #running: ChildProcess | null = null

  /** Makes the folder, if it is not there: one of the user's own, or else one for this process. A compiler that takes longer than `milliseconds` is ended. */
  constructor(compiler: Compiler, folder: string | null, milliseconds: number = COMPILE_TIME) {
    this.compiler = compiler
    this.#milliseconds = milliseconds
    this.folder = openFolder(folder)
    process.once('exit', () => {
      endGroup(this.#running?.pid)
      if (this.folder.isTemporary) fs().rmSync(this.folder.path, { recursive: true, force: true })
    })
  }

  /** The library of a source, made now or before. Throws what the compiler said. */
  async library(source: LibrarySource): Promise<MadeLibrary> {
    const work = this.#workFor(source)
    return work.isDone ? { file: work.file, isNew: false } : this.#made(work, await this.#compile(work))
  }

  /** The same, for a program that waits meanwhile. */
  libraryNow(source: LibrarySource): MadeLibrary {
    const work = this.#workFor(source)
    return work.isDone ? { file: work.file, isNew: false } : this.#made(work, this.#compileNow(work))
  }

  #workFor({ from, text }: LibrarySource): Work {
    const { identity, flags } = this.compiler
    const by = `${identity} ${flags.join(' ')}`
    let emitted: string | null = null
    const source = (): string => (emitted ??= text())
    const name = kept(
      'library',
      () => `${by} ${from()}`,
      isText,
      () => sha256(`${by} ${source()}`),
    )
    const file = path().join(this.folder.path, `${name}.so`)
    const made = path().join(this.folder.path, `${name}.${crypto().randomUUID()}`)
    return { file, made, source, isDone: isWhole(file), command: [...flags, '-o', made, `${made}.c`, '-lm'] }
  }

  /** Lets the compiler write its messages to a file, and returns what `compile` does. Whatever it leaves but the library goes. */
  #withLog<T>({ made, source }: Work, compile: (log: number) => T): T {
    fs().writeFileSync(`${made}.c`, source(), { mode: 0o600 })
    const log = fs().openSync(`${made}.log`, 'w', 0o600)
    try {
      return compile(log)
    } finally {
      fs().closeSync(log)
    }
  }

  async #compile(work: Work): Promise<number | null> {
    const child = this.#withLog(work, (log) => children().spawn(this.compiler.command, work.command, { stdio: ['ignore', log, log], ...OWN_GROUP }))
    const timer = setTimeout(() => endGroup(child.pid), this.#milliseconds)
    timer.unref()
    this.#running = child
    // The program may end without it.
    child.unref()
    try {
      return await new Promise<number | null>((done, failed) => {
        child.once('error', failed)
        child.once('exit', done)
        if (child.pid !== undefined) os().setPriority(child.pid, os().constants.priority.PRIORITY_LOW)
      })
    } catch (error) {
      clean(work.made)
      throw error
    } finally {
      clearTimeout(timer)
      this.#running = null
    }
  }

  #compileNow(work: Work): number | null {
    const { status, pid, error } = this.#withLog(work, (log) =>
      children().spawnSync(this.compiler.command, work.command, { stdio: ['ignore', log, log], timeout: this.#milliseconds, ...OWN_GROUP }),
    )
    endGroup(pid)
    if (error === undefined || status === null) return status
    clean(work.made)
    throw error
  }

  /** Keeps what the compiler has made, which ended with that status; null: it was ended. */
  #made({ file, made }: Work, status: number | null): MadeLibrary {
    try {
      if (status === null) throw new Error(`${this.compiler.command} did not end within ${this.#milliseconds / 1000} s`)
      if (status !== 0) throw new Error(`${this.compiler.command} failed: ${fs().readFileSync(`${made}.log`, 'utf8').slice(0, 2000)}`)
      fs().chmodSync(made, 0o700)
      fs().writeFileSync(`${made}.sum`, sumOf(made), { mode: 0o600 })
      fs().renameSync(`${made}.sum`, `${file}.sum`)
      fs().renameSync(made, file)
    } finally {
      clean(made)
    }
    keepWithin(this.folder, file)
    return { file, isNew: true }
  }
}

const isText = (found: unknown): found is string => typeof found === 'string'

const sumOf = (file: string): string => sha256(fs().readFileSync(file))

/** Whether a library is this user's, and as it was written: to load another one could do anything. */
const isWhole = (file: string): boolean => isOwn(file) && isOwn(`${file}.sum`) && fs().readFileSync(`${file}.sum`, 'utf8') === sumOf(file)
