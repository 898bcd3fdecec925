// A repro as one file: a .tgz with the script, its storages, the modules that it needs, and repro.json, which says what they are. Such a file may come from anyone: reading
// it runs nothing, and no name in it leads out of the folder that it is unpacked to. Running it runs its script.
import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { packTar, unpackTar } from 'modern-tar'
import { ArgumentError } from '../../errors/index.ts'
import { boolean, decode, integer, list, name, object, oneOf, optional, record, string } from '../../protocol/decode.ts'
import type { Decoded } from '../../protocol/decode.ts'

/** The name of the description. */
const MANIFEST = 'repro.json'

const FORMAT = 'tensorfx.repro'

/** Bytes that an archive may unpack to, however small it is, and how many times its own size beyond that. */
const MOST_BYTES = 64 * 2 ** 20
const MOST_TIMES = 10
const MOST_FILES = 10_000

const WRITTEN = object({
  tensorfx: name,
  node: optional(name),
  v8: optional(name),
  platform: optional(name),
  execArgv: optional(list(string(1000), 100)),
  env: optional(record(string(10_000))),
})

const MANIFEST_DATA = object({
  format: oneOf([FORMAT]),
  version: oneOf([1]),
  /** The path of the script. */
  script: name,
  /** Where the script was written; null if it does not say. */
  written: (value: unknown, place): Decoded<typeof WRITTEN> | null => (value === null ? null : WRITTEN(value, place)),
  packed: WRITTEN,
  /** The settings that the script makes. */
  config: record((value: unknown): unknown => value),
  /** The backend's modules, and those that they import. */
  modules: list(name, MOST_FILES),
  /** What the script needs and the archive lacks. */
  missing: list(string(10_000), MOST_FILES),
  /** Whether the script has to be told of its backend. */
  needsBackend: boolean,
  files: record(object({ size: integer(), sha256: name })),
})

export type Manifest = Decoded<typeof MANIFEST_DATA>

/** What an archive holds. */
export interface Archive {
  readonly manifest: Manifest
  /** Contents by path, without the description. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Whether a path stays in the folder that it is relative to, on every system. */
export function isSafePath(path: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is refused
  if (path.length > 1000 || /[\\:*?"<>|\u0000-\u001f\u007f]/.test(path)) return false
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !/[. ]$/.test(part))
}

/** The archive with these files. Throws ArgumentError for a name that cannot be unpacked everywhere. */
export async function packArchive(
  about: Omit<Manifest, 'format' | 'version' | 'files'>,
  files: ReadonlyMap<string, Uint8Array>,
): Promise<Uint8Array> {
  for (const path of files.keys())
    if (!isSafePath(path)) throw new ArgumentError(`the file '${path}' has a name that cannot be unpacked everywhere; rename it.`)
  const manifest: Manifest = {
    format: FORMAT,
    version: 1,
    ...about,
    files: Object.fromEntries([...files].map(([path, bytes]) => [path, { size: bytes.length, sha256: sha256(bytes) }])),
  }
  const entries = [[MANIFEST, new TextEncoder().encode(`${JSON.stringify(manifest, null, 2)}\n`)] as const, ...files]
  const tar = await packTar(
    entries.map(([path, body]) => ({ header: { name: path, size: body.length, type: 'file', mode: 0o644, mtime: new Date(0) }, body })),
  )
  const small = gzipSync(tar)
  // What is smaller than reading allows is not compressed: data may be nearly all zeros.
  return tar.length <= mostBytes(small) ? small : gzipSync(tar, { level: 0 })
}

const mostBytes = (archive: Uint8Array): number => MOST_BYTES + MOST_TIMES * archive.length

/** The files of an archive, checked. Throws ArgumentError for one that is damaged, or is none. */
export async function readArchive(bytes: Uint8Array): Promise<Archive> {
  const files = new Map<string, Uint8Array>()
  const names = new Set<string>()
  for (const { header, data } of await entriesOf(unzipped(bytes))) {
    const { name: path, type = 'file' } = header
    if (type !== 'file') throw refused(`the entry '${path}' is a ${type}, and only files may be in it`)
    if (!isSafePath(path)) throw refused(`the entry '${path}' has a name that leads out of its folder, or is not allowed everywhere`)
    // Some systems take names for the same that differ in case only.
    if (names.has(path.toLowerCase())) throw refused(`the entry '${path}' is there twice`)
    names.add(path.toLowerCase())
    files.set(path, data ?? new Uint8Array())
    if (files.size > MOST_FILES) throw refused(`it holds more than ${MOST_FILES} files`)
  }
  const manifest = manifestOf(files.get(MANIFEST))
  files.delete(MANIFEST)
  checkFiles(manifest, files)
  return { manifest, files }
}

const refused = (why: string, cause?: unknown): ArgumentError =>
  new ArgumentError(`the archive cannot be read: ${why}.`, cause === undefined ? {} : { cause })

function unzipped(bytes: Uint8Array): Uint8Array {
  const most = mostBytes(bytes)
  try {
    return gunzipSync(bytes, { maxOutputLength: most })
  } catch (error) {
    const isLarge = error instanceof RangeError
    throw refused(isLarge ? `it unpacks to more than ${most} bytes` : 'it is no .tgz, or it is damaged', error)
  }
}

async function entriesOf(tar: Uint8Array): ReturnType<typeof unpackTar> {
  try {
    return await unpackTar(tar, { strict: true })
  } catch (error) {
    throw refused('its tar file is damaged', error)
  }
}

function manifestOf(bytes: Uint8Array | undefined): Manifest {
  if (bytes === undefined) throw refused(`there is no ${MANIFEST} in it`)
  let data: unknown
  try {
    data = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    throw refused(`${MANIFEST} is no JSON`, error)
  }
  return decode('repro run', MANIFEST_DATA, data, MANIFEST)
}

/** Throws ArgumentError unless the files are those that the description names, byte for byte. */
function checkFiles({ files: wanted, script, modules }: Manifest, files: ReadonlyMap<string, Uint8Array>): void {
  for (const [path, { size, sha256: hash }] of Object.entries(wanted)) {
    const bytes = files.get(path)
    if (bytes === undefined) throw refused(`the file '${path}' is missing`)
    if (bytes.length !== size) throw refused(`the file '${path}' has ${bytes.length} bytes, and should have ${size}`)
    if (sha256(bytes) !== hash) throw refused(`the file '${path}' is not what it was when it was packed`)
  }
  for (const path of files.keys()) if (!Object.hasOwn(wanted, path)) throw refused(`${MANIFEST} does not name the file '${path}'`)
  for (const path of [script, ...modules]) if (!files.has(path)) throw refused(`the file '${path}' is missing`)
  if (!script.endsWith('.mjs')) throw refused(`its script '${script}' is no .mjs file`)
}
