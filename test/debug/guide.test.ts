// The guides "Debugging a compile" and "Comparing backends": their files and their commands, run one after the other in a new folder.
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { bundledCommand, bundledHome } from '../../scripts/bundled.mjs'
import { root } from '../built/node.ts'
import { folderWith, readRepro } from './processes.ts'

interface Ran {
  readonly status: number | null
  readonly output: string
}

/** Runs the commands of a page in a folder with its files, where tensorfx is installed. */
function follow(guide: string): { readonly folder: string; readonly files: readonly string[]; readonly ran: readonly Ran[] } {
  const page = readFileSync(join(root, `docs/guide/${guide}.md`), 'utf8')
  const files = [...page.matchAll(/```javascript\n\/\/ (\S+)\n([\s\S]*?)```/g)].map(([, name = '', text = '']) => [name, text] as const)
  const commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, command = '']) => command.trim())
  const folder = folderWith(Object.fromEntries(files))
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(bundledHome, join(folder, 'node_modules/tensorfx'))
  // As npm installs it.
  chmodSync(bundledCommand, 0o755)
  symlinkSync(bundledCommand, join(folder, 'node_modules/.bin/tensorfx'))
  const ran = commands.map((line) => {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: folder, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  })
  return { folder, files: files.map(([name]) => name), ran }
}

describe('the commands of the guide', { timeout: 240_000 }, () => {
  it('Debugging a compile lead from a failure to a repro', () => {
    const { folder, files, ran } = follow('debugging-a-compile')
    expect(files).toEqual(['mine.mjs', 'train.mjs'])
    expect(ran.map(({ status }) => status)).toEqual([1, 0, 1, 0])
    expect(ran[0]?.output).toMatch(/mine: there is no kernel for relu[\s\S]*minifier_launcher\.mjs/)
    expect(ran[1]?.output).toContain('Wrote minimal repro out to')
    expect(ran[2]?.output).toContain('mine: there is no kernel for relu')
    expect(ran[3]?.output).toContain('The repro ran without an error.')
    expect(readRepro(join(folder, 'repro.mjs'))).toEqual({ operators: ['relu'], elements: 1, nodes: 3 })
    removeFolder(folder)
  })

  it('Comparing backends lead from two backends to a repro that names both', () => {
    const { folder, files, ran } = follow('comparing-backends')
    expect(files).toEqual(['mine.mjs', 'compare.mjs', 'check.mjs'])
    expect(
      ran.map(({ status }) => status),
      ran.map(({ output }) => output).join('\n'),
    ).toEqual([0, 1, 1, 1, 0])
    expect(ran[0]?.output).toContain(`./mine.mjs#mine: 'relu' differs`)
    for (const { output } of ran.slice(0, 4)) {
      expect(output).toContain('inductor: no node differs')
      expect(output).toMatch(/mine\.mjs#mine: 'relu' differs/)
    }
    expect(ran[2]?.output).toContain('eager: no node differs')
    expect(existsSync(join(folder, 'smallest/graph.safetensors')), ran[4]?.output).toBe(true)
    expect(readFileSync(join(folder, 'smaller/compare.mjs'), 'utf8')).toMatch(/const backends = \['file:.*#mine', 'inductor'\]/)
    removeFolder(folder)
  })
})
