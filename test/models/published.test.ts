// Folders as people publish them: config.json and model.safetensors that Hugging Face's transformers wrote (scripts/published/record.py), and what it computes with them.
import { cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { noGrad } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { ViT, loadPretrained } from 'tensorfx/models'
import { temporaryFolder } from '../helpers/folder.ts'
import { fromStored } from '../pytorch/cases.ts'
import type { StoredTensor } from '../pytorch/cases.ts'

const root = fileURLToPath(new URL('../goldens/families/published', import.meta.url))
const names = readdirSync(root)

interface Recorded {
  readonly inputs: Readonly<Record<string, StoredTensor>>
  readonly outputs: Readonly<Record<string, StoredTensor>>
}

test('eleven folders were recorded', () => expect(names).toHaveLength(11))

describe.each(names)('%s', (name) => {
  it('is loaded from its folder and computes what transformers computes', async () => {
    const recorded = JSON.parse(readFileSync(join(root, name, 'outputs.json'), 'utf8')) as Recorded
    const model = (await loadPretrained(join(root, name))) as unknown as (...inputs: readonly Tensor[]) => Tensor | readonly Tensor[]
    const outputs = [noGrad(() => model(...Object.values(recorded.inputs).map(fromStored)))].flat()
    const wanted = Object.values(recorded.outputs).map(fromStored)
    expect(outputs.map(({ shape }) => shape)).toEqual(wanted.map(({ shape }) => shape))
    for (const [i, output] of outputs.entries()) {
      const expected = wanted[i] as Tensor
      expect(expected.abs().max().item()).toBeGreaterThan(0.1)
      expect(output.sub(expected).abs().max().item()).toBeLessThan(1e-5 * Math.max(1, expected.abs().max().item()))
    }
  })
})

test('a config with an activation that the model does not compute is refused', async () => {
  const path = temporaryFolder('tensorfx-published-')
  cpSync(join(root, 'vit'), path, { recursive: true })
  const config: unknown = JSON.parse(readFileSync(join(path, 'config.json'), 'utf8'))
  writeFileSync(join(path, 'config.json'), JSON.stringify({ ...Object(config), hidden_act: 'relu' }))
  await expect(loadPretrained(path)).rejects.toThrow("config.json: 'hidden_act' must be 'gelu', got 'relu'")
})

test('a ViT has the names of its classes from config.json', async () => {
  expect((await loadPretrained(join(root, 'vit'), { model: ViT })).config.id2label).toEqual({ 0: 'cat', 1: 'dog', 2: 'owl' })
})
