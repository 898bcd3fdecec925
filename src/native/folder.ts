// The folder in which compiled code is kept for later processes. A file is used again only if no other user can have written it, and it is whole.
import { environmentVariable } from '../protocol/index.ts'

const crypto = (): typeof import('node:crypto') => process.getBuiltinModule('node:crypto')
const fs = (): typeof import('node:fs') => process.getBuiltinModule('node:fs')
const os = (): typeof import('node:os') => process.getBuiltinModule('node:os')
const path = (): typeof import('node:path') => process.getBuiltinModule('node:path')

/** Bytes that its files may have. */
const MOST_BYTES = 512 * 2 ** 20

/** The folder of compiled code: TENSORFX_CACHE_DIR, or the user's own folder for such files. */
export const defaultFolder = (): string =>
  environmentVariable('TENSORFX_CACHE_DIR') ?? path().join(environmentVariable('XDG_CACHE_HOME') ?? path().join(os().homedir(), '.cache'), 'tensorfx')

/** The SHA-256 of texts and bytes, one after the other, as hexadecimal digits. */
export function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hash = crypto().createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** Whether a file or folder belongs to this user, and no other user may write to it. */
export function isOwn(file: string): boolean {
  const stat = fs().statSync(file, { throwIfNoEntry: false })
  return stat !== undefined && stat.uid === process.getuid?.() && (stat.mode & 0o022) === 0
}

/** A folder of this user's own, made if it is not there; null, with a message, if there is none. */
function ownFolder(folder: string): string | null {
  try {
    fs().mkdirSync(folder, { recursive: true, mode: 0o700 })
    fs().accessSync(folder, fs().constants.W_OK)
    if (isOwn(folder)) return folder
    console.warn(`tensorfx: others may write to ${folder}, so no compiled code is kept there.`)
  } catch (error) {
    console.warn(`tensorfx: no compiled code can be kept in ${folder} (${String(error)}).`)
  }
  return null
}

/** A folder that is there. */
export interface CacheFolder {
  readonly path: string
  /** Whether it goes when this process ends. */
  readonly isTemporary: boolean
}

/** Makes the folder, if it is not there: the one that is asked for where it is this user's own, or else one for this process. */
export function openFolder(folder: string | null): CacheFolder {
  const own = folder === null ? null : ownFolder(folder)
  if (own !== null) return { path: own, isTemporary: false }
  return { path: fs().mkdtempSync(path().join(os().tmpdir(), 'tensorfx-native-')), isTemporary: true }
}

/** Keeps the folder within its bytes: the oldest libraries and results go, but not `newest`. */
export function keepWithin({ path: folder }: CacheFolder, newest: string): void {
  const files = fs()
    .readdirSync(folder)
    .filter((name) => /\.(so|kept)$/.test(name))
    .map((name) => path().join(folder, name))
    .flatMap((file) => {
      const stat = fs().statSync(file, { throwIfNoEntry: false })
      return stat === undefined ? [] : [{ file, bytes: stat.size, time: stat.mtimeMs }]
    })
    .toSorted((a, b) => a.time - b.time)
  let bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  for (const file of files) {
    if (bytes <= MOST_BYTES) return
    if (file.file === newest) continue
    for (const name of [file.file, `${file.file}.sum`]) fs().rmSync(name, { force: true })
    bytes -= file.bytes
  }
}
