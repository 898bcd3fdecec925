// Folders for the files of a test.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Removes a folder. A process that a test has killed may still be writing there, so that this is tried again for some seconds. */
export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })

/** A new folder whose name begins so, which is removed after the tests of the file, or of the suite that asks for it. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), name))
  afterAll(() => removeFolder(folder))
  return folder
}
