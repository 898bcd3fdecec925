// The file system of writers, in a file of its own: what the declarations of an entry reach needs no types of Node.
import { UnsupportedError } from '../errors/index.ts'

export type Fs = typeof import('node:fs')

/** The file system. Throws UnsupportedError where there is none. */
export function fileSystem(where: string): Fs {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  if (fs === undefined) throw new UnsupportedError(`${where}: there is no file system here; give fit an object { write(step, report), close() }.`)
  return fs
}
