// ResNet-18 of examples/resnet18 with weights that PyTorch saved: it computes what PyTorch computes.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { compile, nn, noGrad } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { temporaryFolder } from '../helpers/folder.ts'
import { fromStored } from '../pytorch/cases.ts'
import type { StoredTensor } from '../pytorch/cases.ts'
import { example } from './run.ts'

interface ResNet18 extends nn.Module {
  forward(images: Tensor): Tensor
}
const { ResNet18 } = (await import(example('resnet18/model.mjs'))) as { readonly ResNet18: new () => ResNet18 }
const { loadResNet18 } = (await import(example('resnet18/load.mjs'))) as { readonly loadResNet18: (file: string) => Promise<ResNet18> }
const { readPpm } = (await import(example('resnet18/image.mjs'))) as { readonly readPpm: (file: string) => Promise<Tensor> }

const weights = (name: string): string => fileURLToPath(new URL(`../goldens/weights/${name}`, import.meta.url))
const scratch = temporaryFolder('tensorfx-resnet-')

describe.each(['pt', 'safetensors'])('weights in a .%s file', (format) => {
  const file = weights(`resnet18_w8.${format}`)

  it('give the scores of PyTorch, as it is and with batch norms folded and compiled', async () => {
    const { inputs, outputs } = JSON.parse(readFileSync(weights('resnet18_w8.json'), 'utf8')) as Readonly<Record<string, StoredTensor[]>>
    const [x, wanted] = [...(inputs ?? []), ...(outputs ?? [])].map(fromStored) as [Tensor, Tensor]
    const model = await loadResNet18(file)
    for (const call of [model, compile(fuse(model)) as unknown as ResNet18]) {
      const scores = noGrad(() => call(x))
      expect(scores.shape).toEqual(wanted.shape)
      expect(scores.sub(wanted).abs().max().item()).toBeLessThan(1e-5)
    }
  })
})

test("the names and the number of parameters of the full size are torchvision's", () => {
  const model = new ResNet18()
  expect([...model.parameters()].reduce((n, p) => n + p.shape.reduce((size, d) => size * d, 1), 0)).toBe(11_689_512)
  expect(model.stateDict().get('layer2.0.downsample.0.weight')?.shape).toEqual([128, 64, 1, 1])
})

test('a file of something else is refused', async () => {
  await expect(loadResNet18(weights('dtypes.pt'))).rejects.toThrow("holds no ResNet-18: there is no 'conv1.weight' in it")
})

test('an image is normalized channel by channel; a file that is no PPM is refused', async () => {
  const file = join(scratch, 'two.ppm')
  writeFileSync(file, Buffer.concat([Buffer.from('P6 2 1 255\n'), Buffer.from([255, 0, 0, 0, 255, 51])]))
  const image = await readPpm(file)
  expect(image.shape).toEqual([1, 3, 1, 2])
  const channel = (value: number, mean: number, deviation: number): unknown => expect.closeTo((value - mean) / deviation, 4)
  expect(image.flatten().toArray()).toEqual([
    channel(1, 0.485, 0.229),
    channel(0, 0.485, 0.229),
    channel(0, 0.456, 0.224),
    channel(1, 0.456, 0.224),
    channel(0, 0.406, 0.225),
    channel(0.2, 0.406, 0.225),
  ])
  writeFileSync(file, 'GIF89a')
  await expect(readPpm(file)).rejects.toThrow('is not a PPM image')
})
