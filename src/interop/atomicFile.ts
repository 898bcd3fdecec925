// Files that are there whole or not at all: they are written under another name, forced to the disk, and renamed.

type Fs = typeof import('node:fs')

/** What the name of a file ends with while it is written. */
export const DRAFT = '.draft'

/** Writes a file so that under its name there is only ever all of it, on the disk and not only in memory. `write` gets the open file. */
export function writeWhole(fs: Fs, file: string, write: (draft: number) => void): void {
  const draft = fs.openSync(`${file}${DRAFT}`, 'w')
  try {
    write(draft)
    fs.fsyncSync(draft)
  } finally {
    fs.closeSync(draft)
  }
  fs.renameSync(`${file}${DRAFT}`, file)
  syncFolder(fs, file.replace(/[^/\\]*$/, '') || '.')
}

/** A new name is on the disk when its folder is. Windows cannot open folders, and needs no such thing. */
export function syncFolder(fs: Fs, path: string): void {
  if (globalThis.process.platform === 'win32') return
  const folder = fs.openSync(path, 'r')
  try {
    fs.fsyncSync(folder)
  } finally {
    fs.closeSync(folder)
  }
}
