// JSON files that the documentation reads.
import { readFileSync } from 'node:fs'
import { ArgumentError, messageOf } from '../errors/index.ts'

/** The value in a file. `where` names the option that gave its path, for messages. Throws ArgumentError if it is not JSON. */
export function readJson(file: string, where = ''): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
  } catch (error) {
    const problem = messageOf(error)
    throw new ArgumentError(`${where === '' ? '' : `${where}: `}${file} cannot be read as JSON: ${problem}`, { cause: error })
  }
}
