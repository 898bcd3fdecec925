// Reads a file in a worker: the page stays alive whatever the file is, and ends the worker if that takes too long.
import { messageOf } from '../../../../errors/index.ts'
import type { PageParts } from '../../document.ts'
import { partsOfFile } from '../../open/partsOfFile.ts'

/** What a page asks a worker for. */
export interface FileRequest {
  readonly name: string
  readonly file: Blob
}

/** What the worker answers: the page of the file, or why it cannot be shown. */
export type FileAnswer = { readonly parts: Omit<PageParts, 'sheet' | 'script'> } | { readonly error: string }

/** Answers requests, in a worker. */
export function serveFiles(): void {
  addEventListener('message', (event: MessageEvent<FileRequest>) => void answer(event.data).then((said) => postMessage(said)))
}

async function answer({ name, file }: FileRequest): Promise<FileAnswer> {
  try {
    return { parts: await partsOfFile(name, file) }
  } catch (error) {
    return { error: messageOf(error) }
  }
}
