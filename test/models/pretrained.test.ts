// Checkpoints: what is saved is loaded, with the names that PyTorch's libraries use; files of other people's models find their places; damaged files and configs are refused.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor, nn } from 'tensorfx'
import { loadSafetensors, writeSafetensors } from 'tensorfx/interop'
import { Bert, GPT2, ViT, efficientnetB0, loadPretrained, mobilenetV3Small, pretrainedBlob, resnet18, savePretrained } from 'tensorfx/models'
import type { Configured, LoadProgress } from 'tensorfx/models'
import { temporaryFolder } from '../helpers/folder.ts'
import { OwnSha256 } from '../../src/models/sha256.ts'
import { example } from '../examples/run.ts'
import { isFull, turn } from '../helpers/rotation.ts'
import { gpt2, llama } from './small.ts'

const { families } = (await import(example('families/index.mjs'))) as { readonly families: Readonly<Record<string, () => nn.Module>> }
const ours = Object.entries(families).filter((entry): entry is [string, () => nn.Module & Configured] => 'modelType' in entry[1]())

const root = temporaryFolder('tensorfx-models-')
const folder = (name: string): string => join(root, name)
const stateOf = (model: nn.Module): Map<string, Tensor> => model.stateDict({ names: 'pytorch' }) as Map<string, Tensor>

function expectSame(own: nn.Module, other: nn.Module): void {
  const [a, b] = [stateOf(own), stateOf(other)]
  expect([...a.keys()]).toEqual([...b.keys()])
  for (const [name, value] of a) expect(torch.equal(value, b.get(name) as Tensor), name).toBe(true)
}

test('all families of tensorfx/models are tried here', () => expect(ours.length).toBe(15))

describe.each(ours)('%s', (name, make) => {
  it('is loaded as it was saved, from one file, from several, and from a Blob', async () => {
    const model = make()
    await savePretrained(model, folder(name))
    const loaded = await loadPretrained(folder(name))
    expectSame(loaded, model)
    expect([loaded.constructor, loaded.training]).toEqual([model.constructor, false])
    expect(JSON.parse(readFileSync(join(folder(name), 'config.json'), 'utf8'))).toMatchObject({ model_type: model.modelType })

    await savePretrained(model, folder(`${name}-shards`), { maxShardSize: 8000 })
    expect(readdirSync(folder(`${name}-shards`)).length).toBeGreaterThan(3)
    expectSame(await loadPretrained(folder(`${name}-shards`)), model)
    expectSame(await loadPretrained(pretrainedBlob(model)), model)
  })
})

test('a ViT keeps the names of its classes, which must be texts', async () => {
  const sizes = { imageSize: 8, patchSize: 4, hiddenSize: 8, intermediateSize: 8, numHiddenLayers: 1, numAttentionHeads: 2, numLabels: 2 }
  const id2label = { 0: 'cat', 1: 'dog' }
  expect((await loadPretrained(pretrainedBlob(new ViT({ ...sizes, id2label })), { model: ViT })).config.id2label).toEqual(id2label)
  expect((await loadPretrained(pretrainedBlob(new ViT(sizes)), { model: ViT })).config).not.toHaveProperty('id2label')
  const broken = pretrainedBlob(new ViT({ ...sizes, id2label: { 0: 7 as never } }))
  await expect(loadPretrained(broken)).rejects.toThrow("config.json: 'id2label' must be names by numbers")
})

test('a tied weight is written once', async () => {
  await savePretrained(new GPT2(gpt2), folder('tied'))
  const names = [...(await loadSafetensors(join(folder('tied'), 'model.safetensors'))).keys()]
  expect(names).toContain('transformer.wte.weight')
  expect(names).not.toContain('lm_head.weight')
})

describe('files of other people', () => {
  /** A checkpoint of a model with other names. */
  async function renamed(
    model: nn.Module & Configured,
    rename: (name: string, value: Tensor) => readonly (readonly [string, Tensor])[],
  ): Promise<nn.Module> {
    const path = folder(`other-${model.modelType}`)
    await savePretrained(model, path)
    writeFileSync(join(path, 'model.safetensors'), writeSafetensors([...stateOf(model)].flatMap(([name, value]) => rename(name, value.detach()))))
    return loadPretrained(path)
  }

  it('the first GPT-2 has no prefix, but masks', async () => {
    const model = new GPT2(gpt2)
    const mask = torch.ones([1, 1, 12, 12]).tril()
    const loaded = await renamed(model, (name, value) =>
      name === 'lm_head.weight'
        ? []
        : name.endsWith('attn.c_attn.weight')
          ? [
              [name.replace('transformer.', ''), value],
              [name.replace('transformer.', '').replace('c_attn.weight', 'bias'), mask],
            ]
          : [[name.replace('transformer.', ''), value]],
    )
    expectSame(loaded, model)
  })

  it('BERT has a prefix, heads, gammas and betas, and in later files no positions', async () => {
    const model = new Bert({
      vocabSize: 24,
      maxPositionEmbeddings: 12,
      hiddenSize: 16,
      numAttentionHeads: 2,
      numHiddenLayers: 1,
      intermediateSize: 32,
    })
    const loaded = await renamed(model, (name, value) => {
      if (name === 'embeddings.position_ids') return [['cls.predictions.bias', torch.zeros([24])]]
      return [[`bert.${name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta')}`, value]]
    })
    expectSame(loaded, model)
  })

  it('ViT keeps queries, keys and values apart', async () => {
    const model = new ViT({
      imageSize: 16,
      patchSize: 8,
      hiddenSize: 16,
      intermediateSize: 32,
      numHiddenLayers: 2,
      numAttentionHeads: 2,
      numLabels: 5,
    })
    // The names of google/vit-base-patch16-224.
    const theirs: Readonly<Record<string, string>> = {
      class_token: 'vit.embeddings.cls_token',
      'encoder.pos_embedding': 'vit.embeddings.position_embeddings',
      'conv_proj.weight': 'vit.embeddings.patch_embeddings.projection.weight',
      'conv_proj.bias': 'vit.embeddings.patch_embeddings.projection.bias',
      'encoder.ln.weight': 'vit.layernorm.weight',
      'encoder.ln.bias': 'vit.layernorm.bias',
      'heads.head.weight': 'classifier.weight',
      'heads.head.bias': 'classifier.bias',
    }
    const layer: Readonly<Record<string, string>> = {
      ln_1: 'layernorm_before',
      ln_2: 'layernorm_after',
      'self_attention.out_proj': 'attention.output.dense',
      'mlp.0': 'intermediate.dense',
      'mlp.3': 'output.dense',
    }
    const names: string[] = []
    const loaded = await renamed(model, (name, value) => {
      const known = theirs[name]
      if (known !== undefined) return [[known, value]]
      const [, i = '', part = '', kind = ''] = /^encoder\.layers\.encoder_layer_(\d)\.(.+?)[._](weight|bias)$/.exec(name) ?? []
      const path = `vit.encoder.layer.${i}.`
      const found: (readonly [string, Tensor])[] =
        part === 'self_attention.in_proj'
          ? value.chunk(3, 0).map((one, k) => [`${path}attention.attention.${['query', 'key', 'value'][k] ?? ''}.${kind}`, one.contiguous()] as const)
          : [[`${path}${layer[part] ?? '?'}.${kind}`, value]]
      names.push(...found.map(([one]) => one))
      return found
    })
    expect(names).toContain('vit.encoder.layer.1.attention.attention.key.bias')
    expect(names.some((name) => name.includes('?'))).toBe(false)
    expectSame(loaded, model)
    const images = torch.randn([2, 3, 16, 16])
    expect(
      torch.equal(
        noGrad(() => (loaded as ViT)(images)),
        noGrad(() => model.train(false).call(images)),
      ),
    ).toBe(true)
  })

  it('bfloat16 weights become what the model has', async () => {
    const model = new GPT2(gpt2)
    const loaded = await renamed(model, (name, value) => [[name, value.to('bfloat16')]])
    for (const [name, value] of stateOf(loaded))
      expect(torch.equal(value, stateOf(model).get(name)?.to('bfloat16').float() as Tensor), name).toBe(true)
  })
})

describe('from a server', () => {
  async function serving<T>(path: string, use: (url: string, requests: string[]) => Promise<T>): Promise<T> {
    const requests: string[] = []
    const server = createServer((request, response) => {
      const name = String(request.url).split('/').at(-1)?.split('?')[0] ?? ''
      requests.push(name)
      if (!existsSync(join(path, name))) return void response.writeHead(404).end()
      const bytes = readFileSync(join(path, name))
      response.writeHead(200, { 'content-length': bytes.length }).end(bytes)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    try {
      return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mine/main`, requests)
    } finally {
      server.close()
    }
  }

  it('streams, with progress; a cache is asked first', async () => {
    const model = new GPT2(gpt2)
    await savePretrained(model, folder('served'), { maxShardSize: 10_000 })
    const shards = readdirSync(folder('served')).filter((name) => name.endsWith('.safetensors'))
    await serving(folder('served'), async (url, requests) => {
      const progress: LoadProgress[] = []
      expectSame(await loadPretrained(url, { onProgress: (one) => progress.push(one) }), model)
      expect(requests.toSorted()).toEqual(['config.json', 'model.safetensors.index.json', ...shards].toSorted())
      for (const file of shards) {
        const own = progress.filter((one) => one.file === file).map(({ loaded }) => loaded)
        expect(own).toEqual(own.toSorted((a, b) => a - b))
        expect(own.at(-1)).toBe(readFileSync(join(folder('served'), file)).length)
      }
      const cache = folder('cache')
      expectSame(await loadPretrained(new URL(url), { cache }), model)
      requests.length = 0
      expectSame(await loadPretrained(new URL(url), { cache }), model)
      expect(requests).toEqual([])
      expect(readdirSync(cache).filter((name) => name.includes('draft'))).toEqual([])
    })
  })

  it('says what the server answered', async () => {
    await serving(folder('nothing'), async (url) => {
      await expect(loadPretrained(url)).rejects.toThrow(/there is no config\.json in http:.*give the config in option 'config'/)
      await expect(loadPretrained(url, { config: { model_type: 'gpt2', vocab_size: 9, n_embd: 4, n_layer: 1, n_head: 1 } })).rejects.toThrow(/404/)
    })
  })
})

describe('what is refused', () => {
  const save = async (name: string, change: (path: string) => void): Promise<string> => {
    await savePretrained(new GPT2(gpt2), folder(name))
    change(folder(name))
    return folder(name)
  }
  const weights = (path: string): string => join(path, 'model.safetensors')
  const config = (path: string, values: object): void =>
    writeFileSync(join(path, 'config.json'), JSON.stringify({ ...JSON.parse(readFileSync(join(path, 'config.json'), 'utf8')), ...values }))

  it('a file without the hash that it should have', async () => {
    const path = await save('hash', () => {})
    const hash = createHash('sha256')
      .update(readFileSync(weights(path)))
      .digest('hex')
    await loadPretrained(path, { integrity: { 'model.safetensors': hash.toUpperCase() } })
    const other = hash.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))
    await expect(loadPretrained(path, { integrity: { 'model.safetensors': other } })).rejects.toThrow(
      `should have the SHA-256 ${other}, but has ${hash}`,
    )
  })

  it.each<[string, (path: string) => void, RegExp]>([
    ['a file that is cut off', (path) => truncateSync(weights(path), 20_000), /there are only \d+ bytes of data/],
    [
      'a family that there is not',
      (path) => config(path, { model_type: 'gpt-2' }),
      /'model_type' must be one of gpt2, .*got 'gpt-2'\. Did you mean 'gpt2'\?/,
    ],
    ['a size that is a text', (path) => config(path, { n_embd: '16' }), /config\.json: 'n_embd' must be a positive integer, got '16'/],
    ['a size below 1', (path) => config(path, { n_layer: -2 }), /'n_layer' must be a positive integer, got -2/],
    [
      'sizes of another model',
      (path) => config(path, { vocab_size: 25 }),
      /wte\.weight has shape \[24, 16\] in the file, but the model of this config has \[25, 16\]/,
    ],
    ['fewer layers', (path) => config(path, { n_layer: 3 }), /missing in the files: transformer\.h\.2\.ln_1\.weight/],
    ['more layers', (path) => config(path, { n_layer: 1 }), /in the files, but not in the model: transformer\.h\.1/],
    ['a config that is a list', (path) => writeFileSync(join(path, 'config.json'), '[]'), /config\.json must hold an object/],
    [
      'a shard in another folder',
      (path) => writeFileSync(join(path, 'model.safetensors.index.json'), '{"weight_map":{"a":"../b.safetensors"}}'),
      /'weight_map' must have names/,
    ],
  ])('%s', async (name, change, message) => {
    await expect(loadPretrained(await save(name, change))).rejects.toThrow(message)
  })

  it('a checkpoint of another family', async () => {
    const path = await save('family', () => {})
    expect((await loadPretrained(path, { model: GPT2 })).config.nEmbd).toBe(16)
    await expect(loadPretrained(path, { model: Bert })).rejects.toThrow("option 'model' is Bert, but the checkpoint is of the family 'gpt2'")
  })

  it('a folder that is none, and models that are not of this package', async () => {
    await expect(loadPretrained(join(root, 'nowhere'))).rejects.toThrow(/is not a folder/)
    await expect(savePretrained(new torch.nn.Linear(1, 1) as never, root)).rejects.toThrow(/must be a model of 'tensorfx\/models', got a Linear/)
  })

  it('a rotary scaling and a window that are not implemented', async () => {
    const small = { model_type: 'llama', vocab_size: 24, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 4 }
    const path = await save('llama', () => {})
    await expect(loadPretrained(path, { config: { ...small, rope_scaling: { rope_type: 'yarn', factor: 2 } } })).rejects.toThrow(
      /'rope_scaling\.rope_type' must be 'llama3', got 'yarn'/,
    )
    await expect(loadPretrained(path, { config: { ...small, model_type: 'mixtral', num_local_experts: 2, sliding_window: 8 } })).rejects.toThrow(
      /sliding_window/,
    )
    expect(llama.vocabSize).toBe(24)
  })
})

test('other names and shapes pass with strict: false', async () => {
  const model = new GPT2(gpt2)
  await savePretrained(model, folder('strict'))
  const loaded = await loadPretrained(folder('strict'), { strict: false, config: { n_layer: 1 } })
  expect(stateOf(loaded).size).toBeLessThan(stateOf(model).size)
  expect(torch.equal(stateOf(loaded).get('transformer.wte.weight') as Tensor, model.transformer.wte.weight)).toBe(true)
})

test('SHA-256 of pieces of any size is that of Node', () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7 + (i >> 3)) & 255)
  for (const [length, piece] of [
    [0, 1],
    [55, 7],
    [56, 56],
    [64, 64],
    [119, 13],
    [1000, 100],
  ] as const) {
    const own = new OwnSha256()
    for (let at = 0; at < length; at += piece) own.update(bytes.subarray(at, Math.min(length, at + piece)))
    expect(own.digest(), String(length)).toBe(createHash('sha256').update(bytes.subarray(0, length)).digest('hex'))
  }
})

// Names and shapes of torchvision's, see scripts/families/generation.py.
const { published } = JSON.parse(readFileSync(new URL('../goldens/families/generation.json', import.meta.url), 'utf8')) as {
  readonly published: Readonly<Record<string, { readonly sha256: string; readonly parameters: number }>>
}
const makers = { mobilenet_v3_small: mobilenetV3Small, efficientnet_b0: efficientnetB0, ...(isFull ? { resnet18 } : {}) }

test.each(turn(Object.entries(makers)))('%s has the names and shapes of torchvision’s', (name, make) => {
  const model = make()
  const text = [...stateOf(model)].map(([key, value]) => `${key} [${value.shape.join(', ')}]`).join('\n')
  expect([...model.parameters()].reduce((sum, one) => sum + one.numel, 0)).toBe(published[name]?.parameters)
  expect(createHash('sha256').update(text).digest('hex')).toBe(published[name]?.sha256)
})
