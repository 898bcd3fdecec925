// examples/gpt/watch.mjs: any text file, with a live page.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { GPT2, loadPretrained } from 'tensorfx/models'
import { example } from './run.ts'

test('watch.mjs trains on a file with a live page, saves the model, and writes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-watch-'))
  try {
    writeFileSync(join(folder, 'text.txt'), 'to be or not to be, that is the question; '.repeat(30))
    const running = promisify(execFile)(process.execPath, [example('gpt/watch.mjs'), 'text.txt', '1', '3'], { cwd: folder, timeout: 110_000 })
    // The page is served as long as the training runs, so it is read at once.
    const page = new Promise<string>((resolve, reject) => {
      let [said, isAsked] = ['', false]
      running.child.stderr?.on('data', (text: Buffer) => {
        said += text.toString()
        const [address] = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(said) ?? []
        if (address !== undefined && !isAsked) resolve(fetch(address).then((response) => response.text()))
        isAsked ||= address !== undefined
      })
      running.catch(reject)
    })
    const [html, { stdout }] = await Promise.all([page, running])
    expect(html).toContain('<title>')
    expect(stdout).toMatch(/^to be or[^]{48}\n$/)
    const saved = await loadPretrained(join(folder, 'tiny-gpt'), { model: GPT2 })
    expect(saved.config.nPositions).toBe(64)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}, 120_000)
