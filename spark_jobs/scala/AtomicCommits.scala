package coldstore

import io.delta.storage.{HDFSLogStore, S3SingleDriverLogStore}
import java.io.{ByteArrayOutputStream, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, Paths}
import java.util.{Iterator => Lines, UUID}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FSDataOutputStreamBuilder, Path, FileAlreadyExistsException => Taken}

// Delta's own log stores look whether a version is there, and then write it: a driver that is frozen between the two, and wakes up after
// another took its place, writes over what that one committed. Here the place itself refuses the second of two.

/** A commit on an S3 server: a conditional put. */
class CommitsOnS3(configuration: Configuration) extends S3SingleDriverLogStore(configuration) {
  override def write(path: Path, actions: Lines[String], overwrite: java.lang.Boolean, configuration: Configuration): Unit =
    if (overwrite) super.write(path, actions, overwrite, configuration)
    else {
      val wanted: FSDataOutputStreamBuilder[_, _] = path.getFileSystem(configuration).createFile(path)
      wanted.must("fs.option.create.conditional.overwrite", true)
      try {
        val file = wanted.build().asInstanceOf[FSDataOutputStream]
        file.write(Commits.bytes(actions))
        file.close()
      } catch {
        case _: Taken => throw new FileAlreadyExistsException(path.toString)
        // the server's refusal, in the words of a jar that is not at hand here
        case error: IOException if error.getClass.getSimpleName == "RemoteFileChangedException" => throw new FileAlreadyExistsException(path.toString)
      }
    }
}

/** A commit on local disks: a hard link, which fails where the name is taken, and shows the whole file at once. */
class CommitsOnDisks(configuration: Configuration) extends HDFSLogStore(configuration) {
  override def write(path: Path, actions: Lines[String], overwrite: java.lang.Boolean, configuration: Configuration): Unit =
    if (overwrite) super.write(path, actions, overwrite, configuration)
    else {
      val target = Paths.get(path.toUri.getPath)
      val whole = target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID}.tmp")
      Files.write(whole, Commits.bytes(actions))
      try Files.createLink(target, whole)
      finally Files.delete(whole)
    }
}

private object Commits {
  def bytes(actions: Lines[String]): Array[Byte] = {
    val content = new ByteArrayOutputStream
    actions.forEachRemaining(line => content.write(s"$line\n".getBytes(UTF_8)))
    content.toByteArray
  }
}
