package unified

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func upload(ctx context.Context, _ *run, b *mongo.GridFSBucket, a *args) (any, error) {
	name, source, o := need(a, "filename", asString), need(a, "source", asBytes), options.GridFSUpload()
	set(a, "chunkSizeBytes", asInt32, o.SetChunkSizeBytes)
	set(a, "metadata", asAny, o.SetMetadata)
	a.get("disableMD5") // the driver never makes one
	if err := a.done(); err != nil {
		return nil, err
	}
	id, err := b.UploadFromStream(ctx, name, bytes.NewReader(source), o)
	if err != nil {
		return nil, err
	}
	return id, nil
}

func download(ctx context.Context, _ *run, b *mongo.GridFSBucket, a *args) (any, error) {
	id := need(a, "id", asAny)
	if err := a.done(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := b.DownloadToStream(ctx, id, &out); err != nil {
		return nil, err
	}
	return bson.Binary{Data: out.Bytes()}, nil
}

func downloadByName(ctx context.Context, _ *run, b *mongo.GridFSBucket, a *args) (any, error) {
	name, o := need(a, "filename", asString), options.GridFSName()
	set(a, "revision", asInt32, o.SetRevision)
	if err := a.done(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := b.DownloadToStreamByName(ctx, name, &out, o); err != nil {
		return nil, err
	}
	return bson.Binary{Data: out.Bytes()}, nil
}

func deleteFile(ctx context.Context, _ *run, b *mongo.GridFSBucket, a *args) (any, error) {
	id := need(a, "id", asAny)
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, b.Delete(ctx, id)
}

func renameFile(ctx context.Context, _ *run, b *mongo.GridFSBucket, a *args) (any, error) {
	id, name := need(a, "id", asAny), need(a, "newFilename", asString)
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, b.Rename(ctx, id, name)
}

func dropBucket(ctx context.Context, _ *run, b *mongo.GridFSBucket, a *args) (any, error) {
	if err := a.done(); err != nil {
		return nil, err
	}
	return nil, b.Drop(ctx)
}
