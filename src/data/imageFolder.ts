// Images in folders, one folder for each class.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { checkArgument, checkCount, checkOptions, checkString, isCallable, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { decodeImage } from '../vision/index.ts'
import { Dataset, checkIndex } from './dataset.ts'

/** Options of {@link ImageFolder}. */
export interface ImageFolderOptions<T = Tensor> {
  /** Makes the sample of an image [3, H, W] of bytes, such as a transform of tensorfx/vision. Default: the image itself. */
  readonly transform?: (image: Tensor) => T
  /** Makes the sample from the bytes of the file, for formats that `decodeImage` does not read. It takes the place of `transform`. */
  readonly decode?: (bytes: Uint8Array, path: string) => T | Promise<T>
  /** The ends of the names of images, in small letters. Default: those of torchvision, `.jpg`, `.png`, … */
  readonly extensions?: readonly string[]
}

const EXTENSIONS = ['.jpg', '.jpeg', '.png', '.ppm', '.bmp', '.pgm', '.tif', '.tiff', '.webp']

/** By code points, as Python sorts. */
const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * The images below a folder, whose folders are the classes: `get(i)` is `[sample, label]`. Classes and images are in the order of their names. torchvision's `ImageFolder`.
 *
 * Images are decoded by {@link decodeImage}: install the package sharp.
 *
 * @throws UnsupportedError where there is no file system; ArgumentError for a folder without classes, and a class without images.
 * @example
 * // pets.mjs
 * const transform = new Compose([new RandomResizedCrop(224), new RandomHorizontalFlip(), new ToDtype('float32', { scale: true })])
 * export default () => new ImageFolder('pets/train', { transform })
 */
export class ImageFolder<T = Tensor> extends Dataset<[T, number]> {
  /** The names of the classes; a label is a position in it. */
  readonly classes: readonly string[]
  /** The path of each image, with its label. */
  readonly samples: readonly (readonly [path: string, label: number])[]
  readonly #decode: (bytes: Uint8Array, path: string) => T | Promise<T>
  readonly #fs: typeof import('node:fs')

  constructor(root: string, options: ImageFolderOptions<T> = {}) {
    checkCount('ImageFolder', arguments, 2)
    super()
    checkString('ImageFolder', 'root', root)
    const fs = globalThis.process?.getBuiltinModule?.('node:fs')
    if (fs === undefined) throw new UnsupportedError('ImageFolder: there is no file system here. Make a dataset of the Blobs that the page has.')
    checkOptions('ImageFolder', options, { transform: true, decode: true, extensions: true })
    const { transform, decode } = options
    for (const [name, given] of Object.entries({ transform, decode }))
      checkArgument(given === undefined || isCallable(given), 'ImageFolder', name, 'a function', given)
    if (transform !== undefined && decode !== undefined)
      throw new ArgumentError("ImageFolder: give 'transform' or 'decode', not both: decode makes the whole sample.")
    this.#fs = fs
    this.#decode =
      decode ??
      (async (bytes) => {
        const image = await decodeImage(bytes)
        // Without a transform, T is Tensor.
        return transform === undefined ? (image as T) : transform(image)
      })
    if (!fs.existsSync(root)) throw new ArgumentError(`ImageFolder: there is no folder ${valueText(root)}.`)
    this.classes = fs
      .readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() || (entry.isSymbolicLink() && fs.statSync(`${root}/${entry.name}`).isDirectory()))
      .map(({ name }) => name)
      .sort(inOrder)
    if (this.classes.length === 0)
      throw new ArgumentError(`ImageFolder: ${valueText(root)} has no folders, which are the classes; put the images of each class into one.`)
    const extensions = options.extensions ?? EXTENSIONS
    this.samples = this.classes.flatMap((name, label) => {
      const paths = imagesBelow(fs, `${root}/${name}`, extensions)
      if (paths.length === 0)
        throw new ArgumentError(`ImageFolder: the class '${name}' has no images (${extensions.join(', ')}); remove its folder, or give 'extensions'.`)
      return paths.map((path) => [path, label] as const)
    })
  }

  get length(): number {
    return this.samples.length
  }

  async get(index: number): Promise<[T, number]> {
    checkCount('ImageFolder.get', arguments, 1)
    const sample = this.samples[checkIndex('ImageFolder.get', index, this.length)]
    const [path, label] = sample ?? ['', 0]
    const bytes = await this.#fs.promises.readFile(path)
    return [await this.#decode(bytes, path), label]
  }
}

/** The paths of images in a folder and those within it. */
function imagesBelow(fs: typeof import('node:fs'), folder: string, extensions: readonly string[]): string[] {
  return fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => extensions.some((end) => name.toLowerCase().endsWith(end)))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .filter((path) => fs.statSync(path).isFile())
    .sort(inOrder)
}
