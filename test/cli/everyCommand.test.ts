// What holds for every command of the table: help, misspelled words, wrong values, JSON, files that are not there or broken, exit codes. A new command is tested at once.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { COMMANDS, runTensorfx } from '../../src/cli/commands.ts'
import { optionsOf } from '../../src/cli/line.ts'
import type { Command, Result } from '../../src/cli/line.ts'

const run = async (words: readonly string[], columns: number | null = null): Promise<Result> =>
  runTensorfx(words, { print: () => {}, note: () => {}, terminal: { columns, isColored: false } })

const folder = temporaryFolder('tensorfx commands ')

/** The options without which a command looks at no file. */
const NEEDED: Readonly<Record<string, readonly string[]>> = { compare: ['--backends', 'eager'], minify: ['--run', 'true'], run: ['-n', '1'] }
/** Commands whose operands are no files. */
const WITHOUT_FILES = new Set(['ops', 'flow'])
/** The ends of the names of files that commands read. */
const ENDS = ['.json', '.safetensors', '.pt', '.npz', '.tgz', '.onnx', '.html', '']

const commands = COMMANDS.map((command) => [command.name, command] as const)
const wordsOf = ({ name }: Command): readonly string[] => name.split(' ')
const hasJson = (command: Command): boolean => optionsOf(command).some(({ name }) => name === '--json')
/** How many files a command takes: `A, B` is two. */
const filesOf = ({ name, operands, forms }: Command): number =>
  WITHOUT_FILES.has(name) ? 0 : operands.length > 0 ? (operands[0]?.name.split(', ').length ?? 0) : /^[A-Z]/.test(forms[0]?.words ?? '') ? 1 : 0

/** A command that cannot do what it was asked says so with its name and exit code 2, as text and as JSON. */
async function refuses(command: Command, words: readonly string[], message: RegExp): Promise<void> {
  const { text, code } = await run([...wordsOf(command), ...words])
  expect([code, text.split('\n')[0]]).toEqual([2, expect.stringMatching(message)])
  expect(text).toMatch(new RegExp(`^tensorfx ${wordsOf(command)[0]}: `))
  expect(text).toContain(`usage: tensorfx ${command.name}`)
  if (!hasJson(command)) return
  const json = await run([...wordsOf(command), '--json', ...words])
  expect([json.code, JSON.parse(json.text)]).toEqual([2, { error: expect.stringMatching(message) as string }])
}

describe.each(commands)('tensorfx %s', (name, command) => {
  it('has help, which names every operand and option, and fits the terminal', async () => {
    const help = await run([...wordsOf(command), '--help'])
    expect(help.code).toBe(0)
    expect(await run(['help', ...wordsOf(command)])).toEqual(help)
    expect(help.text.startsWith(`usage: tensorfx ${name}`)).toBe(true)
    for (const { name: word, text } of [...command.operands, ...optionsOf(command)]) {
      expect(help.text).toMatch(new RegExp(`^ {2}${word.replaceAll(/[.#]/g, '.')}`, 'm'))
      expect(text).not.toBe('')
    }
    // The lines that say how forms and exit codes read are no table.
    const body = (await run([...wordsOf(command), '--help'], 80)).text.split('\n').filter((line) => /^ {2}/.test(line) && !line.includes('tensorfx '))
    for (const line of body) expect(line.length, line).toBeLessThanOrEqual(80)
    // oxlint-disable-next-line no-control-regex -- colors
    expect(help.text).not.toMatch(/\u001B/)
    expect((await run([])).text).toContain(`tensorfx ${name}`)
  })

  it('is suggested where its name is misspelled', async () => {
    const [first = '', second] = wordsOf(command)
    const misspelled = (word: string): string => `${word.slice(0, -1)}${word.at(-1) === 'q' ? 'z' : 'q'}`
    const { text, code } = await run(second === undefined ? [misspelled(first)] : [first, misspelled(second)])
    // A name of two letters is like many others.
    if ((second ?? first).length > 3) expect(text).toContain(`Did you mean '${second ?? first}'?`)
    expect(code).toBe(2)
    expect(await run([second === undefined ? misspelled(first) : first, second === undefined ? '' : misspelled(second), '--json'])).toMatchObject({
      code: 2,
      data: { error: expect.stringMatching(/^unknown command '/) as string },
    })
  })

  it('refuses options that are misspelled, lack their value, or have a wrong one', async () => {
    for (const { name: option, value, type } of optionsOf(command)) {
      if (command.passesOn !== true && option.length > 4)
        await refuses(command, [option.slice(0, -1)], new RegExp(`unknown option '${option.slice(0, -1)}'\\. Did you mean '${option}'\\?`))
      if (value === null) await refuses(command, [`${option}=yes`], new RegExp(`${option} takes no value, got 'yes'`))
      else await refuses(command, [option], new RegExp(`${option} needs a value`))
      if (type !== undefined) await refuses(command, [option, 'certainly not'], new RegExp(`${option} (?:needs|is) .*got 'certainly not'`))
    }
  })

  it('says which file is not there, and refuses too many of them', async () => {
    const files = filesOf(command)
    if (files === 0) return
    const absent = Array.from({ length: files }, (_, i) => join(folder, `absent${i}.safetensors`))
    await refuses(command, [...(NEEDED[name] ?? []), ...absent], /absent0/)
    if (command.passesOn === undefined || command.passesOn === false)
      await refuses(command, [...(NEEDED[name] ?? []), ...absent, ...absent, ...absent], /expected|takes/)
  })
})

describe('a broken file', () => {
  beforeAll(() => {
    for (const end of ENDS) {
      writeFileSync(join(folder, `empty${end}`), '')
      writeFileSync(
        join(folder, `noise${end}`),
        Uint8Array.from({ length: 400 }, (_, i) => (i * 7919 + 13) % 256),
      )
      // The beginning of a zip archive, of gzip, of JSON.
      writeFileSync(join(folder, `zip${end}`), Uint8Array.of(0x50, 0x4b, 3, 4, 0x14, 0, 8, 0, 1, 2, 3))
      writeFileSync(join(folder, `json${end}`), '{"nodes": [1, null, {"op": 3}]}')
    }
  })

  // What runs scripts is tried with them elsewhere.
  const readers = commands.filter(([, command]) => filesOf(command) > 0 && command.passesOn !== 'afterOperand' && command.name !== 'repro pack')

  it.each(readers)('is refused by %s, whatever it is', async (name, command) => {
    for (const end of ENDS)
      for (const kind of ['empty', 'noise', 'zip', 'json']) {
        const files = Array.from({ length: filesOf(command) }, () => join(folder, `${kind}${end}`))
        const words = [...wordsOf(command), ...(NEEDED[name] ?? []), ...files]
        const { text, code } = await run(words)
        expect([code, text.startsWith(`tensorfx ${wordsOf(command)[0]}: `)], words.join(' ')).toEqual([2, true])
      }
  })
})
