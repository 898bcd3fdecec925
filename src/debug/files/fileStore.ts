// Where dumps go: the file system in Node, memory in a browser (the page offers the files for download).
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument, checkCount, checkString, hostProcess, isFunction, isObject } from '../../protocol/index.ts'
import { nodeModule } from '../common/node.ts'

/** A place for dumps: folders and files by path. */
export interface FileStore {
  /** Writes a file and its folders; an existing file is replaced. If it throws, the old file is still there. */
  write(path: string, content: string | Uint8Array): void
  /** The content, or null. */
  read(path: string): Uint8Array | null
  /** Removes a file: a dump that fails takes back what it wrote. */
  remove?(path: string): void
}

/** Throws ArgumentError unless the argument is a FileStore. */
export const checkStore = (where: string, value: unknown): void =>
  checkArgument(
    isObject(value) && 'read' in value && isFunction(value.read) && 'write' in value && isFunction(value.write),
    where,
    'store',
    'a FileStore, which has the methods read and write',
    value,
  )

/** Files in memory, by path. */
export class MemoryFileStore implements FileStore {
  readonly files = new Map<string, Uint8Array>()

  write(path: string, content: string | Uint8Array): void {
    checkString('MemoryFileStore.write', 'path', path)
    checkArgument(
      typeof content === 'string' || content instanceof Uint8Array,
      'MemoryFileStore.write',
      'content',
      'a string or a Uint8Array',
      content,
    )
    this.files.set(path, typeof content === 'string' ? new TextEncoder().encode(content) : content.slice())
  }

  read(path: string): Uint8Array | null {
    return this.files.get(path) ?? null
  }

  remove(path: string): void {
    this.files.delete(path)
  }
}

class NodeFileStore implements FileStore {
  readonly #fs: typeof import('node:fs')
  readonly #path: typeof import('node:path')
  #written = 0

  constructor(fs: typeof import('node:fs'), path: typeof import('node:path')) {
    this.#fs = fs
    this.#path = path
  }

  write(path: string, content: string | Uint8Array): void {
    makeFolder(this.#fs, this.#path, this.#path.dirname(path))
    // A file of its own until it is complete: a full disk or a crash leaves the old file or the new one, never a part.
    const unfinished = `${path}.${hostProcess()?.pid ?? 0}.${this.#written++}.tmp`
    try {
      this.#fs.writeFileSync(unfinished, content, { flag: 'wx' })
      this.#fs.renameSync(unfinished, path)
    } catch (error) {
      this.remove(unfinished)
      throw error
    }
  }

  /** What cannot be removed stays: the error that matters is the one that led here. */
  remove(path: string): void {
    try {
      this.#fs.rmSync(path)
    } catch {}
  }

  read(path: string): Uint8Array | null {
    return this.#fs.existsSync(path) ? new Uint8Array(this.#fs.readFileSync(path)) : null
  }
}

/**
 * Makes a folder and those above it that are missing. Node's own recursive mkdir loops for ever where a folder exists but cannot hold others, such as /proc. Throws
 * ArgumentError if one cannot be made.
 *
 * @internal
 */
export function makeFolder(fs: typeof import('node:fs'), { dirname, resolve }: typeof import('node:path'), folder: string): void {
  const isFolder = (path: string): boolean => {
    try {
      return fs.statSync(path).isDirectory()
    } catch {
      return false
    }
  }
  const missing: string[] = []
  for (let path = resolve(folder); !isFolder(path); path = dirname(path)) {
    missing.push(path)
    if (dirname(path) === path) break
  }
  for (const path of missing.toReversed()) {
    try {
      fs.mkdirSync(path)
    } catch (error) {
      // Another process may have made it in the meantime.
      if (!isFolder(path)) throw new ArgumentError(`the folder ${path} cannot be made.`, { cause: error })
    }
  }
}

let current: FileStore | null = null

/** The store that dumps go to. */
export function fileStore(): FileStore {
  if (current === null) {
    const fs = nodeModule('node:fs')
    const path = nodeModule('node:path')
    current = fs !== null && path !== null ? new NodeFileStore(fs, path) : new MemoryFileStore()
  }
  return current
}

/** Uses another store (tests, pages). Returns the previous one. Throws ArgumentError for what has no methods `read` and `write`. */
export function setFileStore(store: FileStore): FileStore {
  checkCount('setFileStore', arguments, 1)
  checkStore('setFileStore', store)
  const previous = fileStore()
  current = store
  return previous
}

/** Paths with forward slashes, which Node takes on every system; or the address of a page's folder. */
export const joinPath = (...parts: readonly string[]): string => parts.join('/').replace(/(?<!:\/*)\/+/g, '/')

/** The working directory; '' in a browser. */
export const workingDirectory = (): string => hostProcess()?.cwd?.() ?? ''

let runDirectory: string | null = null

/** This process's debug folder under `root`: run_<date>-pid_<pid>, computed once. */
export function debugDirectory(root: string | null): string {
  if (runDirectory === null) {
    const stamp = new Date()
      .toISOString()
      .replace(/[-:T.]/g, '_')
      .replace('Z', '')
    const pid = hostProcess()?.pid ?? 0
    runDirectory = `run_${stamp}-pid_${pid}`
  }
  return joinPath(root ?? joinPath(workingDirectory(), 'tensorfx_compile_debug'), runDirectory)
}
