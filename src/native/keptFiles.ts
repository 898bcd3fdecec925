// Results that were made before, each in a file of the folder of compiled code: a program that starts again makes none of them.
import type { KeptKind, ResultStore } from '../protocol/keptResults.ts'
import { VERSION } from '../version.ts'
import { isOwn, keepWithin, sha256 } from './folder.ts'
import type { CacheFolder } from './folder.ts'

const fs = (): typeof import('node:fs') => process.getBuiltinModule('node:fs')
const path = (): typeof import('node:path') => process.getBuiltinModule('node:path')
const v8 = (): typeof import('node:v8') => process.getBuiltinModule('node:v8')

/** The folder is looked through whenever that many bytes are new. */
const LOOKED_AFTER = 16 * 2 ** 20
/** Digits of a SHA-256. */
const DIGITS = 64

/**
 * What makes results, as text: the version, and the files of the package, or the one file into which a bundler has put them. Those of a checkout change without a version. Null where
 * that is not known.
 */
function makerIdentity(): string | null {
  try {
    const script = process.getBuiltinModule('node:url').fileURLToPath(import.meta.url)
    const root = path().join(path().dirname(script), '..')
    const files = fs().existsSync(path().join(root, 'kernels')) ? filesIn(root) : [script]
    const facts = files.map((file) => {
      const { size, mtimeMs } = fs().statSync(file)
      return `${file} ${size} ${mtimeMs}`
    })
    return sha256(VERSION, process.version, ...facts)
  } catch {
    return null
  }
}

/** The code in a folder. */
const filesIn = (folder: string): string[] =>
  fs()
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.[jt]s$/.test(name) && !name.endsWith('.d.ts'))
    .toSorted()
    .map((name) => path().join(folder, name))

/** How many results were made, and how many found. */
export type KeptCounts = Record<KeptKind, { made: number; found: number }>

/** The results of a folder; null where it cannot be known whether they are those that would be made now. */
export function keptIn(folder: CacheFolder, counts: KeptCounts): ResultStore | null {
  const identity = makerIdentity()
  if (identity === null) return null
  const fileOf = (kind: KeptKind, text: string): string => path().join(folder.path, `${sha256(identity, ' ', kind, ' ', text)}.kept`)
  let fresh = 0
  let isFull = false
  const later: (() => void)[] = []
  const keepAll = (): void => {
    for (const keep of later.splice(0)) keep()
  }
  process.once('exit', keepAll)
  const write = (kind: KeptKind, text: string, result: unknown): void => {
    if (isFull) return
    const file = fileOf(kind, text)
    const bytes = bytesOf(result)
    if (bytes === null) return
    isFull = !written(file, bytes)
    fresh += bytes.length
    if (fresh < LOOKED_AFTER) return
    fresh = 0
    keepWithin(folder, file)
  }
  return {
    find(kind, text) {
      const bytes = read(fileOf(kind, text))
      if (bytes === null) return undefined
      counts[kind].found++
      return v8().deserialize(bytes)
    },
    keep(kind, text, result) {
      counts[kind].made++
      write(kind, text, result)
    },
    keepLater(kind, text, make) {
      counts[kind].made++
      if (later.length === 0) setTimeout(keepAll).unref()
      later.push(() => {
        const result = make()
        if (result !== null) write(kind, text, result)
      })
    },
  }
}

/** A result as bytes; null for one that is not plain data, such as a tensor in it, which only this process has. */
function bytesOf(result: unknown): Uint8Array | null {
  try {
    return v8().serialize(result)
  } catch {
    return null
  }
}

/** The bytes in a file, behind their checksum; null if there is none, or if it is not as it was written, by this user. */
function read(file: string): Buffer | null {
  try {
    if (!isOwn(file)) return null
    const all = fs().readFileSync(file)
    const bytes = all.subarray(DIGITS)
    return all.toString('latin1', 0, DIGITS) === sha256(bytes) ? bytes : null
  } catch {
    // Another process has dropped it meanwhile.
    return null
  }
}

/** Writes a file that is there at once or not at all. Returns whether there was room. */
function written(file: string, bytes: Uint8Array): boolean {
  const made = `${file}.${crypto.randomUUID()}`
  try {
    fs().writeFileSync(made, Buffer.concat([Buffer.from(sha256(bytes)), bytes]), { mode: 0o600 })
    fs().renameSync(made, file)
    return true
  } catch {
    fs().rmSync(made, { force: true })
    return false
  }
}
