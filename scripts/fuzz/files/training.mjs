// Files of a training: its state (tensorfx/checkpoint), and arrays (.npy, IDX) that datasets read. Each format as in formats.mjs.
import { mutateBytes } from './mutate.mjs'

/** Parts of a training whose states a file sets. Loading into them is all or nothing. */
function partsOfTraining({ torch, nn, optim, data, training }) {
  const model = new nn.Sequential(new nn.Linear(2, 3), new nn.BatchNorm1d(3))
  const optimizer = new optim.Adam(model.parameters(), { lr: 0.1 })
  const schedulers = [new optim.StepLR(optimizer, 2), new optim.ReduceLROnPlateau(optimizer)]
  const loader = new data.DataLoader([1, 2, 3, 4], { shuffle: true, generator: new torch.Generator(3) })
  const state = { model, optimizer, schedulers, scaler: new torch.amp.GradScaler(), generators: [new torch.Generator(1)], data: loader }
  return { state, parts: training.partsOf('loadCheckpoint', state) }
}

function fileOf(api, { state, extra }) {
  const { parts } = api.training.filePartsOf('saveCheckpoint', { ...state, extra }, { score: 0.5, mode: 'min' })
  return Uint8Array.from(Buffer.concat([...parts]))
}

/** The states of parts as a text. */
const textOf = (api, parts) =>
  JSON.stringify(
    parts.map((part) => part.read()),
    (_, value) => (value instanceof Map ? [...value] : value instanceof api.Tensor ? value.toArray() : value),
  )

function seedsOfTraining(api) {
  const { state } = partsOfTraining(api)
  const fresh = fileOf(api, { state, extra: { step: 0, best: NaN, names: new Map([['a', 1n]]) } })
  state
    .model(api.torch.ones([4, 2]))
    .sum()
    .backward()
  state.optimizer.step()
  return [fresh, fileOf(api, { state, extra: undefined })]
}

/** An array in the layout of a format: header, then elements. */
const bytesOf = (header, elements) => Uint8Array.from(Buffer.concat([Buffer.from(header, 'latin1'), Buffer.from(elements.buffer)]))

/** A .npy file. `descr`: numpy's dtype. */
function npy(descr, order, shape, elements) {
  const text = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': (${shape}), }\n`
  return bytesOf(`\x93NUMPY\x01\x00${String.fromCharCode(text.length, 0)}${text}`, elements)
}

/** The elements of an array are those of its file, and no more. */
function checkArray({ torch }, array, bytes) {
  if (array.numel * array.elementSize() > bytes.length) throw new RangeError('the array is larger than its file')
  String(array)
  torch.sum(array.to('float64')).item()
}

/** The formats. `mutateFile` and `mutateState` make mutants of a file with a header, and of the state within it. */
export const trainingFormats = ({ mutateFile, mutateState }) => ({
  training: {
    form: 'state',
    seeds: seedsOfTraining,
    mutate: (dice, bytes) => (dice.chance(0.25) ? mutateFile(dice, bytes) : mutateState(dice, bytes)),
    read(api, bytes) {
      const file = api.readSafetensors(bytes)
      const { state, parts } = partsOfTraining(api)
      const before = textOf(api, parts)
      try {
        api.training.loadFile('loadCheckpoint', file, parts)
      } catch (error) {
        if (textOf(api, parts) !== before) throw new RangeError('a checkpoint that was refused changed the training')
        throw error
      }
      state
        .model(api.torch.ones([4, 2]))
        .sum()
        .backward()
      state.optimizer.step()
    },
  },
  npy: {
    form: 'bytes',
    seeds: () => [
      npy('<f4', 'False', '2, 3', Float32Array.of(1, 2, 3, 4, 5, 6)),
      npy('>i2', 'True', '3, 1', Int16Array.of(1, 2, 3)),
      npy('|b1', 'False', '', Uint8Array.of(1)),
      npy('<i8', 'False', '0, 5', new BigInt64Array(0)),
    ],
    mutate: mutateBytes,
    read: (api, bytes) => checkArray(api, api.data.arrayOf('readNpy', 'the file', bytes), bytes),
  },
  idx: {
    form: 'bytes',
    seeds: () => [
      bytesOf('\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01', Uint8Array.of(1, 2, 3, 4)),
      bytesOf('\0\0\x0d\x01\0\0\0\x02', Uint8Array.of(0x3f, 0x80, 0, 0, 0x40, 0, 0, 0)),
      bytesOf('\0\0\x0b\x02\0\0\0\x01\0\0\0\x02', Uint8Array.of(0, 1, 0, 2)),
    ],
    mutate: mutateBytes,
    read: (api, bytes) => checkArray(api, api.data.idxArray(bytes), bytes),
  },
})
