// Writes a folder of files so that a reader, or a crash, never finds half of it.
import { UnsupportedError } from '../errors/index.ts'

let folders = 0

/**
 * Writes files into `directory`, which is created if necessary; other files there stay. They are written into a folder beside it, which then takes its place; where the
 * directory exists and has files, they are moved one by one. Only works in Node. Throws UnsupportedError elsewhere.
 */
export async function writeFolder(where: string, directory: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  const host = globalThis.process
  const fs = host?.getBuiltinModule?.('node:fs/promises')
  const path = host?.getBuiltinModule?.('node:path')
  if (fs === undefined || path === undefined)
    throw new UnsupportedError(`${where}: there is no file system here; folderFiles(gm) returns the contents of the files.`)
  const target = path.resolve(directory)
  const draft = `${target}.tmp-${host.pid}-${folders++}`
  await fs.mkdir(draft, { recursive: true })
  try {
    for (const [name, data] of Object.entries(files)) await fs.writeFile(path.join(draft, name), data)
    if (await isMoved(fs.rename(draft, target))) return
    await fs.mkdir(target, { recursive: true })
    for (const name of Object.keys(files)) await fs.rename(path.join(draft, name), path.join(target, name))
  } finally {
    await fs.rm(draft, { recursive: true, force: true })
  }
}

/** Whether a folder could be moved; not to where another one with files is (in Windows, to where anything is). */
const isMoved = (move: Promise<void>): Promise<boolean> =>
  move.then(
    () => true,
    () => false,
  )
