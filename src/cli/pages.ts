// Pages that commands write and open.
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { ArgumentError, messageOf } from '../errors/index.ts'

/** The program that opens a file in the user's browser, and its words. */
export function openerOf(platform: string, path: string): readonly [command: string, ...words: string[]] {
  const url = pathToFileURL(path).href
  if (platform === 'darwin') return ['open', url]
  return platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler', url] : ['xdg-open', url]
}

/** Opens a page. Returns when the program has been started. Throws ArgumentError if it is not there. */
async function open(path: string): Promise<void> {
  const [command, ...words] = openerOf(process.platform, path)
  await new Promise<void>((done, fail) => {
    const child = spawn(command, words, { stdio: 'ignore', detached: true })
    child.on('spawn', () => {
      child.unref()
      done()
    })
    child.on('error', (error) =>
      fail(new ArgumentError(`the page ${path} was written, but ${command} cannot open it: ${error.message}. Open the file yourself.`)),
    )
  })
}

/** Writes a file. Throws ArgumentError if that is impossible. */
export function writeText(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (error) {
    throw new ArgumentError(`${path} cannot be written: ${messageOf(error)}`, { cause: error })
  }
}

/** Writes a page, and opens it if there is a `note` to say so. Throws ArgumentError if one of both is impossible. */
export async function writePage(path: string, page: string, note: ((line: string) => void) | null): Promise<void> {
  writeText(path, page)
  if (note === null) return
  note(`opening ${path}`)
  await open(path)
}
