// Writers: event files as TensorBoard's own writer has them, byte for byte; CSV and JSON lines.
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { readCsv, readJsonLines } from 'tensorfx/data'
import { CsvWriter, JsonLinesWriter, TensorBoardWriter } from 'tensorfx/train'
import { removeFolder } from '../helpers/folder.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tensorfx-writers-'))
})
afterEach(() => removeFolder(folder))

interface Recorded {
  readonly name: string
  readonly calls: readonly (readonly [method: string, tag: string, value: never, step: number, walltime: number])[]
  readonly bytes: string
}
const recorded: readonly Recorded[] = JSON.parse(readFileSync(new URL('../goldens/around/tensorboard.json', import.meta.url), 'utf8'))

describe('TensorBoardWriter', () => {
  it.each(recorded)('writes $name as PyTorch', ({ calls, bytes }) => {
    const writer = new TensorBoardWriter(folder, { walltime: 1700000000.5 })
    for (const [method, tag, value, step, walltime] of calls) {
      if (method === 'add_histogram') writer.addHistogram(tag, value, step, { walltime })
      else writer.addScalar(tag, value, step, { walltime, newStyle: method.includes('new_style') })
    }
    writer.close()
    expect(readFileSync(writer.path).toString('hex')).toBe(bytes)
    expect(readdirSync(folder)[0]).toMatch(/^events\.out\.tfevents\.1700000000\..+\.\d+\.\d+$/)
  })

  it('takes tensors, texts and reports, and refuses what is none', () => {
    const writer = new TensorBoardWriter(join(folder, 'deep/er'))
    writer.addScalar('a', torch.tensor([2]), 300)
    writer.addScalars('b', { x: 1, y: 2 }, 1)
    writer.addText('note', 'Grüße', 2)
    writer.addHistogram('w', torch.randn([3, 4]), 2)
    writer.addHistogram('zeros', [0, 0], 2)
    writer.write(7, { loss: 0.5, lr: 0.1 })
    const text = readFileSync(writer.path).toString('utf8')
    for (const word of ['b/x', 'b/y', 'note/text_summary', 'Grüße', 'loss', 'lr']) expect(text).toContain(word)
    expect(() => writer.addScalar('a', 'x' as never)).toThrow(
      "TensorBoardWriter.addScalar: argument 'value' must be a number or a tensor of one, got 'x'",
    )
    expect(() => writer.addScalar('', 1)).toThrow("argument 'tag' must be a text")
    expect(() => writer.addScalar('a', 1, -1)).toThrow("argument 'step' must be an integer from 0 on, got -1")
    expect(() => writer.addHistogram('h', [NaN])).toThrow('the values must be finite numbers')
    expect(() => writer.addHistogram('h', [])).toThrow('the values must be finite numbers')
    expect(() => new TensorBoardWriter('')).toThrow("argument 'folder' must be the path of a folder")
    writer.close()
    writer.close()
    expect(() => writer.addScalar('a', 1)).toThrow('the file is closed')
  })
})

it('JSON lines are read again, numbers that JSON lacks as texts, and go on in the same file', async () => {
  const path = join(folder, 'log.jsonl')
  for (const step of [1, 2]) {
    const writer = new JsonLinesWriter(path)
    writer.write(step, { loss: step === 1 ? NaN : 0.25, 'validation/accuracy': 1 })
    writer.close()
  }
  expect(await readJsonLines(path)).toEqual([
    { step: 1, loss: 'NaN', 'validation/accuracy': 1 },
    { step: 2, loss: 0.25, 'validation/accuracy': 1 },
  ])
})

it('CSV has a header once, also when it goes on, and another one for other columns', async () => {
  const path = join(folder, 'log.csv')
  const first = new CsvWriter(path)
  first.write(1, { loss: 0.5, 'a,"b"': 2 })
  first.close()
  const second = new CsvWriter(path)
  second.write(2, { loss: 0.25, 'a,"b"': 3 })
  expect(await readCsv(path)).toEqual([
    { step: 1, loss: 0.5, 'a,"b"': 2 },
    { step: 2, loss: 0.25, 'a,"b"': 3 },
  ])
  second.write(3, { accuracy: 1 })
  second.close()
  expect(readFileSync(path, 'utf8').split('\n')).toEqual(['step,loss,"a,""b"""', '1,0.5,2', '2,0.25,3', 'step,accuracy', '3,1', ''])
  expect(() => second.write(4, { accuracy: 1 })).toThrow('CsvWriter.write: the file is closed')
  expect(() => new CsvWriter(path).write(1.5, {})).toThrow("argument 'step' must be an integer from 0 on, got 1.5")
  expect(() => new JsonLinesWriter(path).write(1, { loss: torch.tensor(1) as never })).toThrow('report.loss must be a number')
})
