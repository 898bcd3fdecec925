// The programs of examples/, as a user runs them: in a process of their own, on the built package.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The path of a file of the examples. */
export const example = (name: string): string => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))

/** What `node examples/… args` prints. */
export async function runExample(name: string, ...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [example(name), ...args], { timeout: 110_000 })).stdout
}

/** The losses among printed lines, in order. */
export const losses = (text: string): number[] => [...text.matchAll(/^step \d+: loss ([\d.]+)/gm)].map(([, loss]) => Number(loss))
