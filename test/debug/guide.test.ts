// The guide "Debugging a compile": its files and its commands, run one after the other in a new folder.
import { readFileSync, rmSync, symlinkSync, mkdirSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../built/node.ts'
import { folderWith, readRepro } from './processes.ts'

const page = readFileSync(join(root, 'docs/guide/debugging-a-compile.md'), 'utf8')

it('the commands of the guide lead from a failure to a repro', { timeout: 120_000 }, () => {
  const files = [...page.matchAll(/```javascript\n\/\/ (\S+)\n([\s\S]*?)```/g)].map(([, name = '', text = '']) => [name, text] as const)
  const commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, command = '']) => command.trim())
  expect([files.map(([name]) => name), commands.length]).toEqual([['mine.mjs', 'train.mjs'], 4])
  const folder = folderWith(Object.fromEntries(files))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/tensorfx'))
  const ran = commands.map((command) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  })
  expect(ran.map(({ status }) => status)).toEqual([1, 0, 1, 0])
  expect(ran[0]?.output).toMatch(/mine: there is no kernel for relu[\s\S]*minifier_launcher\.mjs/)
  expect(ran[1]?.output).toContain('Wrote minimal repro out to')
  expect(ran[2]?.output).toContain('mine: there is no kernel for relu')
  expect(ran[3]?.output).toContain('The repro ran without an error.')
  expect(readRepro(join(folder, 'repro.mjs'))).toEqual({ operators: ['relu'], elements: 1, nodes: 3 })
  rmSync(folder, { recursive: true })
})
