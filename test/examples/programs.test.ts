// Programs of examples/ as a whole: they learn, write and classify. What they are made of has tests of its own beside this file.
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { losses, runExample } from './run.ts'

const weights = (name: string): string => fileURLToPath(new URL(`../goldens/weights/${name}`, import.meta.url))

test('lstm: the loss falls in a few steps, and questions get an answer of digits', async () => {
  const text = await runExample('lstm/train.mjs', '24')
  const seen = losses(text)
  expect(seen).toHaveLength(7)
  expect(seen.at(-1)).toBeLessThan((seen[0] ?? 0) - 0.7)
  expect(text).toMatch(/^7\+5=\d*$/m)
})

test('gpt: the loss falls in a few steps, and the text goes on after the prompt', async () => {
  const text = await runExample('gpt/train.mjs', '12')
  const seen = losses(text)
  expect(seen.length).toBeGreaterThan(4)
  expect(seen[0]).toBeCloseTo(Math.log(56), 0)
  expect(seen.at(-1)).toBeLessThan((seen[0] ?? 0) - 0.7)
  expect(text).toMatch(/graphs\nShall I [^]{56}\n/)
})

test('unet: after a few steps less than half of the error of the noise is left', async () => {
  const text = await runExample('unet/train.mjs', '24')
  const seen = losses(text)
  expect(seen).toHaveLength(7)
  expect(seen.at(-1)).toBeLessThan((seen[0] ?? 0) / 2)
  const [, before, after] = (/360 test images: ([\d.]+) with noise, ([\d.]+) without/.exec(text) ?? []).map(Number)
  expect(before).toBeCloseTo(0.16, 2)
  expect(after).toBeLessThan((before ?? 0) / 2)
  // Two rows of four pictures: 8 lines, an empty one, 8 lines.
  const lines = text.split('\n').slice(-18, -1)
  expect(lines[8]).toBe('')
  expect(lines.filter((line) => /^[ .:=+*#%@-]{16}( {2}\| {2}[ .:=+*#%@-]{16}){3}$/.test(line))).toHaveLength(16)
})

test.each(['pt', 'safetensors'])('resnet18: weights in a .%s file are read by the program, which says three classes', async (format) => {
  const text = await runExample('resnet18/classify.mjs', weights(`resnet18_w8.${format}`))
  expect(text).toContain('177362 parameters, image 1x3x224x224')
  const classes = [...text.matchAll(/^(eager|compiled): [\d.]+ ms, classes (.*)$/gm)].map(([, , found]) => found)
  expect(classes[0]).toMatch(/^\d \(\d+\.\d%\), \d \(\d+\.\d%\), \d \(\d+\.\d%\)$/)
  expect(classes[1]).toBe(classes[0])
  expect(Number(/difference of a score: (\S+)/.exec(text)?.[1])).toBeLessThan(1e-5)
})

test('the ResNet-18 learns to read digits whose images worker threads make, and says how long it waited for them', async () => {
  const text = await runExample('resnet18/train.mjs', '1', '8')
  const [, loss, accuracy] = /^epoch 1\/1: loss ([\d.]+), accuracy [\d.]+, validation\/loss [\d.]+, validation\/accuracy ([\d.]+); /m.exec(text) ?? []
  // By chance it is right in a tenth, and the loss is the logarithm of ten.
  expect(Number(loss), text).toBeLessThan(2.2)
  expect(Number(accuracy), text).toBeGreaterThan(0.2)
}, 120_000)
