// The page of a file, but for its program and style: what pages do in a worker with a file that is dropped on them, and the command where it writes a page.
import type { PageParts } from '../document.ts'
import { graphParts } from '../graphParts.ts'
import { weightsParts } from '../weightsParts.ts'
import { openFile } from './openFile.ts'
import type { FileContents } from './openFile.ts'

/** Reads a file, see {@link openFile}. */
export async function partsOfFile(name: string, file: FileContents): Promise<Omit<PageParts, 'sheet' | 'script'>> {
  const opened = await openFile(name, file)
  return 'graph' in opened ? graphParts(opened.graph, null) : weightsParts(opened.weights)
}
