// inferShape: the sizes for which a graph works, found from what its operators ask of symbols. The first two tests are PyTorch's fx/test_shape_inference.py, with conditions in the place of messages.
import { describe, expect, it } from 'vitest'
import { ArgumentError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { ShapeEnv, SymInt, inferShape, inferSymbolValues } from 'tensorfx/fx/experimental'
import type { InferredShapes } from 'tensorfx/fx/experimental'
import { randomNumbers } from '../../symbols/shapes.ts'

const F = nn.functional
const textsOf = ({ shapes }: InferredShapes): string[] => shapes.map((shape) => `[${shape.map((size) => size.toString()).join(', ')}]`)
/** Sizes with which the graph is said to work. */
const hintsOf = ({ shapes }: InferredShapes): number[][] =>
  shapes.map((shape) => shape.map((size) => (typeof size === 'number' ? size : Number(size.hint))))

describe('test_shape_inference.py', () => {
  it('test_infer_symbol_values', () => {
    const env = new ShapeEnv()
    const s = Array.from({ length: 8 }, () => {
      const size = env.createSymInt(2, 'dynamic')
      if (!(size instanceof SymInt)) throw new Error('not a symbol')
      return size
    })
    const [s0, s1, s2, s3, s4, s5, s6, s7] = s
    if (!s0 || !s1 || !s2 || !s3 || !s4 || !s5 || !s6 || !s7) throw new Error('eight symbols')
    const found = inferSymbolValues(env, [
      s1.eq(1773),
      s2.floorDivide(2).add(12).eq(120),
      s0.mul(s3).remainder(s0.mul(32)).eq(0),
      s3.floorDivide(32).eq(20),
      s4.add(1568).eq(5728),
      s5.eq(40),
      s0.mul(s6).add(s0.mul(1344)).remainder(s0.mul(32)).eq(0),
      s0.mul(s6).add(s0.mul(1344)).remainder(47).eq(0),
      s7.eq(4258),
    ])
    expect(Object.fromEntries([...(found ?? [])].map(([{ name }, value]) => [name, value]))).toEqual({
      s0: 2,
      s1: 1773,
      s2: 216,
      s3: 640,
      s4: 4160,
      s5: 40,
      s6: 160,
      s7: 4258,
    })
  })

  it('test_infer_shape', () => {
    class TestModule extends nn.Module {
      w1: Tensor = torch.empty([256, 328])
      b1: Tensor = torch.empty([256])
      w2: Tensor = torch.empty([328, 256])
      b2: Tensor = torch.empty([328])

      override forward(x: Tensor): Tensor {
        return torch.tanh(F.linear(torch.sigmoid(F.linear(x, this.w1, this.b1)), this.w2, this.b2))
      }
    }
    const found = inferShape(symbolicTrace(new TestModule()), [torch.randn([1, 1])])
    expect(textsOf(found)).toEqual(['[s0, 328]'])
  })
})

describe('inferShape', () => {
  it('finds sizes that depend on each other, and annotates the graph', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor, z: Tensor) => torch.cat([x.matmul(y), z], 1).view(-1, 32))
    const found = inferShape(gm, [torch.ones([1, 1]), torch.ones([1, 1]), torch.ones([1, 1])])
    expect(textsOf(found)).toEqual(['[s0, s1]', '[s1, s3]', '[s0, s5]'])
    expect(found.shapeEnv.guardTexts().join()).toContain('Mod')
    expect(gm.printReadable({ print: false })).toContain('f32[s0, s3 + s5]')
  })

  it('sizes with which graphs are said to work are such: drawn chains of layers', () => {
    const random = randomNumbers(28)
    const draw = (from: number, to: number): number => from + Math.floor(random() * (to - from))
    for (let round = 0; round < 30; round++) {
      const layers: nn.Module[] = []
      let width = draw(2, 40)
      for (let i = 0; i < draw(1, 5); i++) {
        const next = draw(2, 40)
        layers.push([new nn.Linear(width, next), new nn.LayerNorm([width]), new nn.ReLU()][draw(0, 3)] ?? new nn.ReLU())
        if (layers.at(-1) instanceof nn.Linear) width = next
      }
      const groups = draw(2, 6)
      class Model extends nn.Module {
        layers: nn.Sequential = new nn.Sequential(...layers)

        override forward(x: Tensor, y: Tensor): Tensor {
          return this.layers.call(x).mul(y).reshape(groups, -1)
        }
      }
      const gm = symbolicTrace(new Model())
      const found = inferShape(gm, [torch.ones([1, 1]), torch.ones([1])])
      expect(() => gm.forward(...hintsOf(found).map((shape) => torch.ones(shape)))).not.toThrow()
    }
  })

  it('says what no sizes satisfy', () => {
    const gm = symbolicTrace((x: Tensor) => F.linear(x, torch.ones([4, 3])).add(F.linear(x, torch.ones([4, 5]))))
    expect(() => inferShape(gm, [torch.ones([1, 1])])).toThrow(ArgumentError)
    expect(() => inferShape(gm, [torch.ones([1, 1])])).toThrow(
      'inferShape: no sizes of the inputs with Eq(s1, 3) are known for which the graph works. torch.nn.functional.linear: ',
    )
  })
})
