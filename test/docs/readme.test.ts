// Every JavaScript example of the README runs, and prints what its comments say.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'

const readme = readFileSync(fileURLToPath(new URL('../../README.md', import.meta.url)), 'utf8')
const examples = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map((m) => m[1] as string)

/** The example as the body of an async function: its imports become dynamic ones. */
function runnable(code: string): string {
  return code.replace(
    /^import \{(.*)\} from '(.*)'$/gm,
    (_, names: string, from: string) => `const {${names.replaceAll(' as ', ': ')}} = await load('${from}')`,
  )
}

const modules: Record<string, () => Promise<unknown>> = {
  tensorfx: () => import('tensorfx'),
  'tensorfx/compile': () => import('tensorfx/compile'),
  'tensorfx/debug': () => import('tensorfx/debug'),
}

describe('the README', () => {
  it('has examples', () => expect(examples.length).toBeGreaterThan(4))

  it.each(examples.map((code, i) => [i + 1, code] as const))('example %i runs as it says', async (_, code) => {
    const lines: string[] = []
    const log = vi
      .spyOn(console, 'log')
      .mockImplementation((value: unknown) => void lines.push(typeof value === 'string' ? value : JSON.stringify(value)))
    // oxlint-disable-next-line typescript/no-implied-eval -- the example's own text is what is tested
    const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (load: (name: string) => Promise<unknown>) => Promise<void>
    try {
      await new AsyncFunction('load', runnable(code))(async (name) => (modules[name] as () => Promise<unknown>)())
    } finally {
      log.mockRestore()
    }
    const expected = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map((m) => (m[1] as string).split(': what')[0] as string)
    const printed = lines.filter((l) => !l.includes('\n'))
    expect(printed.map((l) => l.replaceAll(',', ', '))).toEqual(expected)
    const block = /^\/\/ (function[\s\S]*?)\n(?!\/\/)/m.exec(code)?.[1]?.replaceAll('\n// ', '\n')
    if (block !== undefined) expect(lines.find((l) => l.includes('\n'))).toBe(block)
  })
})
